"""Metrics of other packages at their limits: what they cannot take, and why."""

import inspect
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
import torchmetrics
import torchmetrics.classification as tc
import torchmetrics.functional as tf
import torchmetrics.functional.classification as tfc
import torchmetrics.functional.regression as tfr
import torchmetrics.regression as tr
from torchmetrics import wrappers
from torchmetrics.clustering import MutualInfoScore
from torchmetrics.image import PeakSignalNoiseRatio
from torchmetrics.retrieval import RetrievalMAP

from metricopt import ConfigError, DataError, MetricError
from metricopt.reading.callables import make_metric
from metricopt.reading.meaning import Meaning
from metricopt.tasks.judge import bound_metric
from tests.robustness import foreign_tables as tables
from tests.robustness.foreign_tables import WIDE, measured, prepared, returned

TEN = np.arange(10)
WITHOUT_NINE = returned("logits")[1] != 9
ONLY_ONES = returned("one logit")[1].flatten() == 1


@pytest.mark.parametrize(
    ("function", "expects"),
    [
        (sk.log_loss, "scores"),
        (sk.brier_score_loss, "scores"),
        (sk.d2_log_loss_score, "scores"),
        (sk.hinge_loss, "decisions"),
        (sk.top_k_accuracy_score, "scores"),
        (partial(sk.roc_auc_score, multi_class="ovo"), "scores"),
    ],
)
def test_a_class_that_no_target_has(function, expects):
    """Scikit-learn refused the ten probabilities, or took them for nine classes."""
    read, truth = prepared(expects, "logits", only=WITHOUT_NINE)
    expected = function(truth.numpy(), read.numpy(), labels=TEN)
    found = measured(function, "logits", only=WITHOUT_NINE)
    assert found == pytest.approx(expected, rel=1e-9)


def test_classes_that_the_user_gives_stay():
    other = partial(sk.log_loss, labels=[*range(11)])
    with pytest.raises(MetricError, match="number of classes in labels is different"):
        measured(other, "logits")


@pytest.mark.parametrize("function", [sk.log_loss, sk.brier_score_loss])
@pytest.mark.parametrize("case", ["one logit", "two logits"])
def test_targets_of_one_class(function, case):
    read = prepared("scores", case, only=ONLY_ONES)[0].numpy()
    by_hand = {
        sk.log_loss: -np.log(read).mean(),
        sk.brier_score_loss: ((1 - read) ** 2).mean(),
    }[function]
    found = measured(function, case, only=ONLY_ONES)
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_hinge_loss_of_one_class_is_refused():
    """Scikit-learn takes a single class for the negative one, even if it is 1."""
    text = "hinge_loss needs targets of both classes, got"
    with pytest.raises(DataError, match=text):
        measured(sk.hinge_loss, "one logit", only=ONLY_ONES)


COUNTED = tc.BinaryAccuracy()
OTHERS = [
    (torchmetrics.MetricCollection([COUNTED]), "pass one of its metrics"),
    (torchmetrics.MeanMetric(), "is of aggregation, and only metrics of"),
    (RetrievalMAP(), "is of retrieval, and only metrics of"),
    (MutualInfoScore(), "is of clustering, and only"),
    (PeakSignalNoiseRatio(data_range=1.0), "is of image, and only"),
    (wrappers.BootStrapper(COUNTED), "is of wrappers, and only metrics of"),
    (wrappers.MinMaxMetric(COUNTED), "is of wrappers, and only metrics of"),
    (COUNTED + 1, "CompositionalMetric is of metric, and only metrics of"),
    (tc.BinaryFairness(num_groups=2), "update also needs groups: pass a funct"),
    (tc.BinaryGroupStatRates(num_groups=2), "update also needs groups: pass a"),
    (tr.KLDivergence(), r"takes \(p, q\), not \(preds, target\): wrap it in a func"),
    (tfr.kl_divergence, r"takes \(p, q\), not \(preds, target\): wrap it in a func"),
    (tr.ContinuousRankedProbabilityScore(), "compares several predictions of a num"),
    (tfc.binary_fairness, "also needs groups: pass a functools.partial that"),
    (tfc.demographic_parity, r"takes \(preds, groups\), not \(preds, target\): wrap"),
    (tfc.fbeta_score, "also needs task: pass a functools.partial that gives it"),
    (partial(tfc.accuracy, task="both"), "has task='both'; expected one of binary, mu"),
    (tf.retrieval_average_precision, "is of retrieval, and only metrics of"),
    (tf.pairwise_cosine_similarity, "is of pairwise, and only metrics of"),
    (sk.fbeta_score, "also needs beta: pass a functools.partial that gives it"),
]


@pytest.mark.parametrize(("spec", "text"), OTHERS)
def test_what_needs_more_than_predictions_and_targets(spec, text):
    """They failed at the first query, or read targets as weights."""
    with pytest.raises(ConfigError, match=text):
        make_metric(spec, **WIDE)


@pytest.mark.parametrize("name", sorted(tables.SKLEARN_OTHERS))
def test_functions_of_scikit_learn_that_compare_something_else(name):
    function = getattr(sk, name)
    first = ", ".join([*inspect.signature(function).parameters][:2])
    with pytest.raises(ConfigError) as caught:
        make_metric(function, **WIDE)
    assert str(caught.value) == (
        f"scikit-learn's {name} takes ({first}), not (y_true, y_pred): wrap it in a "
        f"function of (outputs, targets)"
    )


SEVERAL_NUMBERS = [
    *(sk.confusion_matrix, sk.roc_curve, sk.classification_report),
    partial(sk.precision_recall_fscore_support, average="macro"),
    sk.make_scorer(sk.confusion_matrix),
    *(tc.BinaryConfusionMatrix(), tc.BinaryROC(), tfc.binary_stat_scores),
    partial(tfc.precision_recall_curve, task="multiclass", num_classes=3),
]


@pytest.mark.parametrize("spec", SEVERAL_NUMBERS)
def test_what_gives_several_numbers_is_asked_for_no_direction(spec):
    with pytest.raises(ConfigError, match="gives several numbers, but a metric is one"):
        make_metric(spec)


def test_what_gives_several_numbers_by_an_argument_is_told_by_them():
    f1 = partial(sk.f1_score, average=None)
    with pytest.raises(MetricError, match="must return one number, got ndarray of sha"):
        measured(f1, "two logits")


UNSUITED = [
    (tc.BinaryAccuracy(), "logits", "BinaryAccuracy is for 2 classes, but the outputs"),
    (tc.MulticlassAccuracy(num_classes=3), "logits", "is for 3 classes, but the out"),
    (tc.MulticlassAccuracy(num_classes=4), "several logits", "expects labels as targ"),
    (tc.MultilabelAccuracy(num_labels=10), "logits", "expects multi-label as targets"),
    (tr.MeanAbsoluteError(), "logits", "expects numbers as targets, but here targets"),
    (sk.mean_absolute_error, "two logits", "expects numbers as targets, but here tar"),
    (sk.log_loss, "several logits", "expects labels as targets, but here targets are"),
    (sk.accuracy_score, "number", "expects labels or multi-label as targets, but"),
]


@pytest.mark.parametrize(("spec", "case", "text"), UNSUITED)
def test_targets_of_another_kind(spec, case, text):
    """Several labels had a log loss, which scikit-learn takes of the positive ones."""
    with pytest.raises(DataError, match=text):
        measured(spec, case)


@pytest.mark.parametrize("spec", [sk.accuracy_score, tc.BinaryAccuracy(), sk.log_loss])
def test_outputs_with_nan_are_refused(spec):
    """They counted as class 0."""
    outputs = torch.tensor([[1.0], [float("nan")], [-1.0]])
    with pytest.raises(MetricError, match="was given outputs with NaN"):
        make_metric(spec).value(outputs, torch.ones(3).long())


def dense(classes, seed=0):
    """Logits [6, C, 4, 4] and labels [6, 4, 4], some of which are none."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, classes, 4, 4, generator=generator)
    labels = torch.randint(classes, (6, 4, 4), generator=generator)
    labels[0, 0] = -100
    return Meaning("logits", "labels", "channels", ignored=-100), logits, labels


def test_dense_outputs_without_the_ignored_labels():
    meaning, logits, labels = dense(3)
    kept = labels != -100
    shares = logits.double().softmax(1).movedim(1, -1)[kept]
    spec = tc.MulticlassAUROC(num_classes=3)
    expected = sk.roc_auc_score(labels[kept], shares, multi_class="ovr")
    found = bound_metric(make_metric(spec), meaning).value(logits, labels)
    assert found == pytest.approx(expected, abs=1e-6)
    score = partial(sk.f1_score, average="macro")
    expected = score(labels[kept], logits.argmax(1)[kept])
    found = bound_metric(make_metric(score), meaning).value(logits, labels)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "spec",
    [
        tc.MulticlassExactMatch(num_classes=3),
        partial(tfc.multiclass_exact_match, num_classes=3),
    ],
)
def test_exact_matches_of_dense_outputs_are_refused(spec):
    """Every pixel was an example: they were accuracies."""
    meaning, logits, labels = dense(3)
    metric = bound_metric(make_metric(spec, **WIDE), meaning)
    with pytest.raises(DataError, match="compares whole examples, but dense outputs"):
        metric.value(logits, labels)


def test_an_object_keeps_its_state():
    """What the user had accumulated was reset."""
    own = tc.BinaryAccuracy()
    own.update(torch.tensor([0.9, 0.8, 0.1]), torch.tensor([1, 0, 0]))
    measured(own, "one logit")
    assert own.compute().item() == pytest.approx(2 / 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_an_object_on_another_device(place):
    own = tc.MulticlassAccuracy(num_classes=10).to("cuda" if place == "cpu" else "cpu")
    outputs, labels = (part.to(place) for part in returned("logits"))
    found = make_metric(own).value(outputs, labels)
    assert found == pytest.approx(make_metric(own).value(outputs.cpu(), labels.cpu()))
    assert own.device.type != place


class OwnError(torchmetrics.Metric):
    """A metric as a user writes one, for labels and for numbers."""

    higher_is_better = False

    def __init__(self):
        super().__init__()
        self.add_state("total", torch.tensor(0.0))
        self.add_state("count", torch.tensor(0))

    def update(self, preds, target):
        self.total = self.total + (preds - target).abs().sum()
        self.count = self.count + target.numel()

    def compute(self):
        return self.total / self.count


@pytest.mark.parametrize("case", ["two logits", "several logits", "number"])
def test_an_own_object_gets_scores_or_numbers(case):
    """It was refused where targets are numbers."""
    read, truth = prepared("scores", case)
    expected = (read - truth).abs().mean().item()
    assert measured(OwnError(), case) == pytest.approx(expected, rel=1e-9)


def test_numbers_without_a_network():
    """A regression is a regression before a network says what its outputs mean."""
    outputs, targets = returned("number")
    metric = make_metric(sk.mean_absolute_error, high=9.0)
    expected = sk.mean_absolute_error(targets, outputs)
    assert metric.value(outputs, targets) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(DataError, match="expects numbers as targets"):
        metric.value(outputs, torch.ones(len(outputs)).long())
    with pytest.raises(DataError, match="but here targets are numbers"):
        make_metric(sk.accuracy_score).value(outputs, targets)


def test_probabilities_of_soft_labels_stay_probabilities():
    """Methods read them as logits, which are no numbers to compare with."""
    shares, targets = torch.rand(20, 1), torch.rand(20, 1)
    meaning = Meaning("probabilities", "numbers", link="sigmoid")
    metric = bound_metric(make_metric(sk.mean_absolute_error), meaning)
    expected = sk.mean_absolute_error(targets, shares)
    assert metric.value(meaning.inward(shares), targets) == pytest.approx(
        expected, abs=1e-6
    )

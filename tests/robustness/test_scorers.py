"""Scorers of scikit-learn, by name or as objects: the number that the scorer gives."""

import functools
from functools import cache

import numpy as np
import pytest
import torch
import torchmetrics.functional.segmentation as tfs
import torchmetrics.segmentation as ts
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import (
    f1_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    recall_score,
)
from torch import nn
from torch.nn import functional

from metricopt import (
    METRICS,
    ConfigError,
    DataError,
    MetricError,
    at_least,
    finetune,
    make_metric,
    tune,
)
from metricopt.reading.meaning import meaning_of
from metricopt.tasks.judge import bound_metric
from tests.metricopt.digits_network import pretrained, splits
from tests.metricopt.drawn import draw, labels
from tests.robustness.foreign_tables import MARGINS, measured, prepared, returned
from tests.robustness.refused import given, refusal

CASES = ("two logits", "logits", "several logits", "number")
CLUSTERS = {
    *("adjusted_mutual_info_score", "adjusted_rand_score", "completeness_score"),
    *("fowlkes_mallows_score", "homogeneity_score", "mutual_info_score"),
    *("normalized_mutual_info_score", "rand_score", "v_measure_score"),
}


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """Predicts what the network of a case returned; examples are their places."""

    def __init__(self, case):
        self.case = case

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.arange(2 if self.case == "two logits" else 10)

    def predict(self, places):
        return prepared("labels", self.case)[0].numpy()[places]

    def predict_proba(self, places):
        if self.case == "several logits":
            return prepared("scores", self.case)[0].numpy()[places]
        outputs = returned(self.case)[0].double()
        return outputs.softmax(1).numpy()[places]


class KnownRegressor(RegressorMixin, BaseEstimator):
    """Predicts what the network of a case returned; examples are their places."""

    def __init__(self, case):
        self.case = case

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, places):
        return prepared("scores", self.case)[0].numpy()[places]


@cache
def direct(name, case):
    """The number of scikit-learn's scorer, or None where it gives none."""
    truth = prepared("scores" if case == "number" else "labels", case)[1].numpy()
    kind = KnownRegressor if case == "number" else KnownClassifier
    try:
        found = get_scorer(name)(kind(case), np.arange(len(truth)), truth)
    except (AttributeError, TypeError, ValueError):
        return None
    return None if np.isnan(found) else float(found)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:(The y_prob|.*y_pred|.*one class):UserWarning")
def test_every_name_has_the_number_of_the_scorer(case):
    """Only registered names were known: 'accuracy' was answered with 'jaccard'."""
    compared = []
    for name in sorted(set(get_scorer_names()) - CLUSTERS - set(METRICS)):
        expected = direct(name, case)
        metric = make_metric(name)
        assert metric.name == name
        assert metric.higher_is_better
        of_numbers = get_scorer(name)._score_func.__module__.endswith("_regression")
        if expected is None or of_numbers != (case == "number"):
            with pytest.raises((DataError, MetricError)) as caught:
                measured(name, case)
            assert "\n" not in str(caught.value).partition(": ")[0]
        elif case == "several logits" and ("brier" in name or "log_loss" in name):
            # scikit-learn reads several labels as a distribution.
            with pytest.raises(DataError, match="expects labels as targets"):
                measured(name, case)
        else:
            assert measured(get_scorer(name), case) == pytest.approx(expected, rel=1e-9)
            assert measured(name, case) == pytest.approx(expected, rel=1e-9)
            compared.append(name)
    assert len(compared) > 8, compared
    assert ("neg_mean_squared_error" in compared) == (case == "number")
    assert ("f1_macro" in compared) == (case != "number")


@pytest.mark.parametrize("name", sorted(CLUSTERS & set(get_scorer_names())))
def test_scorers_of_clusterings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name} compares clusterings, whose labels"):
        make_metric(name)


def test_registered_names_come_first():
    """Scikit-learn has an `f1`, too."""
    assert {"f1", "recall", "jaccard"} <= set(METRICS) & set(get_scorer_names())
    assert type(make_metric("f1")) is METRICS.get("f1")


def test_settings_of_a_named_scorer():
    outputs, targets = returned("logits")
    hits = (outputs.topk(3).indices == targets[:, None]).any(1)
    metric = make_metric("top_k_accuracy", k=3)
    assert metric.value(outputs, targets) == pytest.approx(hits.double().mean().item())
    with pytest.raises(ConfigError, match="'f1_macro' has no setting 'beta'; known"):
        make_metric("f1_macro", beta=2.0)


@pytest.mark.parametrize("case", ["two logits", "logits"])
@pytest.mark.parametrize(
    ("method", "expects"),
    [("predict", "labels"), ("predict_proba", "scores"), ("decision_function", "")],
)
def test_a_scorer_of_a_function_of_the_users(method, expects, case):
    """It gets targets first, and what its response method asks for."""

    def cost(y_true, y_pred, weight):
        return weight * (np.arange(1, 1 + y_pred.size) @ y_pred.ravel() + y_true[3])

    scorer = make_scorer(
        cost, response_method=method, greater_is_better=False, weight=2.0
    )
    if expects:
        read, truth = prepared(expects, case)
    else:
        read, truth = MARGINS[case](returned(case)[0]), returned(case)[1]
    metric = make_metric(scorer)
    assert metric.name == "neg_cost"
    assert metric.higher_is_better
    found = metric.value(*returned(case))
    assert found == pytest.approx(-cost(truth.numpy(), read.numpy(), 2.0), rel=1e-9)


def test_a_scorer_decides_what_its_function_gets():
    """AUC of decided labels, as `make_scorer` makes it by default."""
    from sklearn.metrics import roc_auc_score

    read, truth = prepared("labels", "two logits")
    found = measured(make_scorer(roc_auc_score), "two logits")
    assert found == pytest.approx(roc_auc_score(truth, read))
    assert found != pytest.approx(measured("roc_auc", "two logits"), abs=1e-3)


def of_estimator(estimator, X, y):  # noqa: N803
    return estimator.score(X, y)


@pytest.mark.parametrize("spec", [of_estimator, lambda clf, x, y: 0.0])
def test_a_scorer_that_runs_the_estimator_is_refused(spec):
    with pytest.raises(ConfigError, match=r"got a scorer of \(\w+, [Xx], y\), which"):
        make_metric(spec, higher_is_better=True)


def test_near_names_of_scorers_are_offered():
    with pytest.raises(ConfigError, match="did you mean 'accuracy'"):
        make_metric("Acuracy")
    with pytest.raises(ConfigError, match="did you mean 'f1_macro' or 'f-macro'"):
        make_metric("f1-macros")


def segmented(shape, classes, ignored=False):
    """Logits and labels of small images."""
    generator = torch.Generator().manual_seed(3)
    targets = torch.randint(classes, shape, generator=generator)
    outputs = torch.randn(shape[0], classes, *shape[1:], generator=generator)
    outputs += 1.5 * nn.functional.one_hot(targets, classes).movedim(-1, 1)
    if ignored:
        targets[0, 0] = -100
    return outputs, targets


def value_of(metric, outputs, targets):
    meaning = meaning_of(outputs, targets, loss=nn.CrossEntropyLoss())
    return bound_metric(make_metric(metric), meaning).value(outputs, targets)


@pytest.mark.parametrize("form", ["index", "one-hot", "mixed"])
@pytest.mark.parametrize("kind", [ts.MeanIoU, ts.DiceScore, ts.GeneralizedDiceScore])
def test_metrics_of_segmentation(kind, form):
    """They were refused as metrics that compare anything but predictions."""
    outputs, targets = segmented((6, 8, 9), 3)
    metric = kind(num_classes=3, input_format="index")
    metric.update(outputs.argmax(1), targets)
    expected = metric.compute().item()
    found = value_of(kind(num_classes=3, input_format=form), outputs, targets)
    assert found == pytest.approx(expected)
    assert 0.3 < found < 0.9


def test_segmentation_of_two_classes_with_one_logit():
    outputs, targets = segmented((6, 8, 9), 2)
    one = (outputs[:, 1] - outputs[:, 0])[:, None]
    meaning = meaning_of(one, targets, loss=nn.BCEWithLogitsLoss())
    metric = ts.MeanIoU(num_classes=2, input_format="index")
    expected = value_of(metric, outputs, targets)
    found = bound_metric(make_metric(metric), meaning).value(one, targets)
    assert found == pytest.approx(expected)


MEAN_IOU = ts.MeanIoU(num_classes=3, input_format="index")


@pytest.mark.parametrize(
    ("metric", "data", "text"),
    [
        (
            MEAN_IOU,
            segmented((6, 8, 9), 4),
            "MeanIoU is for 3 classes, but the out",
        ),
        (MEAN_IOU, segmented((60,), 3), "MeanIoU compares maps of classes, outputs"),
        (MEAN_IOU, segmented((6, 8, 9), 3, True), "cannot leave out the label -100"),
    ],
)
def test_what_segmentation_cannot_compare(metric, data, text):
    with pytest.raises(DataError, match=text):
        value_of(metric, *data)


def test_functions_of_segmentation_are_refused():
    with pytest.raises(ConfigError, match="mean_iou gives a value for every image"):
        make_metric(tfs.mean_iou, higher_is_better=True)


def test_a_call_towards_a_named_scorer():
    train, observe, _ = splits()
    found = finetune(
        pretrained(1),
        train=train,
        observe=observe,
        loss=nn.CrossEntropyLoss(),
        metric="f1_macro",
        method="portfolio",
        queries=12,
        no_harm=False,
    )
    decided = found.merge()(observe[0]).argmax(1)
    after = f1_score(observe[1], decided, average="macro")
    assert found.metric.name == "f1_macro"
    assert found.metric_after == pytest.approx(after)
    assert found.metric_after > found.metric_before


@pytest.mark.parametrize("settings", [{}, {"outputs": "logits"}])
def test_recall_of_scores_asks_which_one_is_meant(settings):
    _, (inputs, labels), _ = splits()
    data, loss = (inputs[:200], labels[:200]), nn.CrossEntropyLoss()

    def called(metric, loss=loss, **other):
        return finetune(
            pretrained(1),
            train=data,
            observe=data,
            loss=loss,
            metric=metric,
            method="cma-es",
            no_harm=False,
            queries=4,
            progress=False,
            **other,
        )

    text = (
        "'recall@1' compares embeddings, but .*logits.*: for the recall of labels, "
        "pass 'recall_macro', .* two classes; for embeddings, pass metric='recall@1'"
    )
    with pytest.raises(ConfigError, match=text):
        called("recall", **settings)
    with torch.no_grad():
        decided = pretrained(1)(data[0]).argmax(1)
    expected = recall_score(data[1], decided, average="macro")
    assert called("recall_macro", **settings).metric_before == pytest.approx(expected)
    # Who names it in full, or has a loss of embeddings, gets it.
    assert called("recall@1").meaning.kind == "embeddings"
    assert called("recall", lambda o, t: o.square().mean()).meaning.kind == "embeddings"


LOSSES = {
    "an object": nn.CrossEntropyLoss(),
    "a function": functional.cross_entropy,
    "settings": functools.partial(functional.cross_entropy, label_smoothing=0.1),
    "of probabilities": nn.NLLLoss(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_mean_recall_of_scores_is_refused_before_any_query(name):
    text = (
        "metric 'mean-recall' compares embeddings, but .* reads the outputs as logits "
        "or probabilities: for the mean of the recalls of all classes, pass "
        "'balanced_accuracy' or 'recall_macro'; for embeddings, pass "
        "metric='mean-recall' with outputs='embeddings'$"
    )
    own = {"metric": "mean-recall", "loss": LOSSES[name]}
    assert refusal(ConfigError, text, **own).partial is None
    bounded = own | {"metric": "recall@1", "constraints": [at_least("mean-recall", 1)]}
    refusal(ConfigError, text, **bounded)
    with pytest.raises(ConfigError, match="reads embeddings: for the mean of the rec"):
        tune(draw(60, 3).numpy(), labels(60).numpy(), "mean-recall", progress=False)
    found = finetune(**given(**own), outputs="embeddings")
    assert found.meaning.kind == "embeddings"


def test_embeddings_are_not_what_the_user_calls_otherwise():
    data = torch.randn(20, 4), torch.arange(20) % 2
    text = "'map@r' compares embeddings, but outputs='values' says that there are none"
    with pytest.raises(ConfigError, match=text):
        finetune(
            nn.Linear(4, 2),
            train=data,
            observe=data,
            loss=nn.MSELoss(),
            metric="map@r",
            outputs="values",
        )


def test_tune_says_which_recall_is_one_of_labels():
    outputs, labels = np.linspace(-1, 1, 60), np.arange(60) % 2
    with pytest.raises(ConfigError, match="reads embeddings: for the recall of"):
        tune(outputs, labels, "recall", progress=False)
    found = tune(outputs, labels, recall_score, queries=16, progress=False)
    assert found.metric_before == recall_score(labels, outputs > 0)
    with pytest.raises(ConfigError, match="reads embeddings: use finetune with a netw"):
        tune(outputs, labels, "map@r", progress=False)

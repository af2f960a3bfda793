"""Metrics made of names, scikit-learn functions, accumulating objects, callables."""

import pickle
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

from metricopt.errors import ConfigError, MetricError
from metricopt.metrics.base import METRICS
from metricopt.metrics.counted import F1
from metricopt.reading.callables import make_metric
from tests.metricopt.drawn import seeded
from tests.metricopt.metrics.checked import check_metric

GENERATOR = seeded(7)
ONE = torch.randn(60, 1, generator=GENERATOR)
TWO = torch.randn(60, 2, generator=GENERATOR)
FOUR = torch.randn(60, 4, generator=GENERATOR)
BINARY = torch.randint(2, (60,), generator=GENERATOR)
CLASSES = torch.randint(4, (60,), generator=GENERATOR)


def share_right(outputs, targets):
    return float(((outputs[:, 0] > 0) == (targets == 1)).double().mean())


class Accumulator:
    """An accuracy in the shape of torchmetrics; keeps what it was given."""

    higher_is_better = True

    def __init__(self):
        self.seen = []
        self.resets = 0

    def reset(self):
        self.seen, self.resets = [], self.resets + 1

    def update(self, predictions, targets):
        self.seen.append((predictions, targets))

    def compute(self):
        hits = [self._hits(*pair) for pair in self.seen]
        return torch.cat(hits).double().mean()

    def _hits(self, predictions, targets):
        if predictions.ndim == 1:
            return (predictions >= 0.5) == (targets == 1)
        return predictions.argmax(1) == targets


class ClassAccumulator(Accumulator):
    num_classes = 2


class ModuleAccumulator(torch.nn.Module, Accumulator):
    higher_is_better = None

    def __init__(self):
        torch.nn.Module.__init__(self)
        Accumulator.__init__(self)

    def forward(self, predictions, targets):
        raise AssertionError("only update and compute are to be called")


def test_names_and_metrics_are_returned_as_they_are():
    metric = make_metric("f1")
    assert type(metric) is F1
    assert make_metric(metric) is metric
    assert make_metric(metric, higher_is_better=True, name="f1") is metric
    # A registered metric with settings is named by them: top-k is top-5 by default.
    settled = {"top-k", "recall"}
    assert {make_metric(name).name for name in METRICS} == set(METRICS) - settled


RANGE = "needs a finite range low < high, got low="
DEFINED = r"metric 'f1' is defined as Declaration\(hi"
SILENT = "metric '{}' does not say which direction is better: pass "
SILENT += "higher_is_better=True or higher_is_better=False$"


@pytest.mark.parametrize(
    ("spec", "declared", "text"),
    [
        ("f2", {}, "unknown metric 'f2'; known: ap50, ap50-a"),
        ("f1", {"higher_is_better": False}, DEFINED),
        ("f1", {"name": "mine"}, DEFINED),
        ("f1", {"low": -1.0}, DEFINED),
        (ModuleAccumulator(), {}, SILENT.format("ModuleAccumulator")),
        (share_right, {}, "^" + SILENT.format("share_right")),
        (share_right, {"higher_is_better": True, "low": 1.0, "high": 0.0}, RANGE),
        (share_right, {"higher_is_better": True, "low": 0.0, "high": 0.0}, RANGE),
        (share_right, {"higher_is_better": True, "high": float("inf")}, RANGE),
        (Accumulator, {}, r"got the class Accumulator: pass Accumulator"),
        (3, {}, "or a callable, got int 3"),
    ],
)
def test_what_makes_no_metric_is_refused(spec, declared, text):
    with pytest.raises(ConfigError, match=text):
        make_metric(spec, **declared)


OF_LABELS = {sk.accuracy_score: True, sk.f1_score: True, sk.jaccard_score: True}
OF_LABELS |= {sk.zero_one_loss: False, sk.hamming_loss: False}
OF_SCORES = {sk.roc_auc_score: True, sk.average_precision_score: True}
OF_SCORES |= {sk.brier_score_loss: False, sk.log_loss: False}


def test_sklearn_undefined_values_are_quiet_or_refused():
    negative = torch.full((60, 1), -1.0)
    assert make_metric(sk.precision_score).value(negative, BINARY) == 0.0
    with pytest.raises(MetricError, match="'roc_auc_score' returned nan"):
        make_metric(sk.roc_auc_score).value(ONE, torch.ones_like(BINARY))
    # Errors of its own are named.
    text = "'f1_score' raised ValueError: Target is mult"
    with pytest.raises(MetricError, match=text):
        make_metric(sk.f1_score).value(FOUR, CLASSES)


@pytest.mark.parametrize(
    ("spec", "outputs", "expected"),
    [
        (Accumulator(), ONE, torch.sigmoid(ONE.double())[:, 0]),
        (Accumulator(), TWO, TWO.double().softmax(1)[:, 1]),
        (ClassAccumulator(), TWO, TWO.double().softmax(1)),
        (ClassAccumulator(), ONE, torch.cat([-ONE, ONE], 1).double().sigmoid()),
        (Accumulator(), FOUR, FOUR.double().softmax(1)),
    ],
)
def test_accumulating_objects(spec, outputs, expected):
    targets = CLASSES if outputs.shape[1] == 4 else BINARY
    metric = make_metric(spec)
    first = metric.value(outputs, targets)
    again = metric.value(outputs, targets)
    assert first == again
    assert first == pytest.approx(1 - make_metric("mcr").value(outputs, targets))
    assert (len(spec.seen), spec.resets) == (1, 2)
    torch.testing.assert_close(spec.seen[0][0], expected)
    assert (metric.name, metric.higher_is_better) == (type(spec).__name__, True)
    assert check_metric(metric, outputs, targets) == first


def test_only_update_and_compute_of_a_module_are_called():
    metric = make_metric(ModuleAccumulator(), higher_is_better=True)
    assert metric.value(ONE, BINARY) == pytest.approx(share_right(ONE, BINARY))


def test_plain_callable():
    metric = make_metric(share_right, higher_is_better=True)
    rows = torch.stack([ONE, -ONE])
    expected = [share_right(row, BINARY) for row in rows]
    assert metric.values(rows, BINARY).tolist() == expected
    assert (metric.name, metric.low, metric.high) == ("share_right", 0.0, 1.0)


def test_callable_gets_no_gradients():
    metric = make_metric(
        lambda outputs, targets: np.mean(outputs.numpy() > 0), higher_is_better=True
    )
    assert metric.value(ONE.clone().requires_grad_(), BINARY) > 0


@pytest.mark.parametrize("spec", [sk.f1_score, share_right], ids=["sklearn", "plain"])
def test_metrics_travel_to_worker_processes(spec):
    metric = make_metric(spec, higher_is_better=True)
    copy = pickle.loads(pickle.dumps(metric))
    assert copy.value(ONE, BINARY) == metric.value(ONE, BINARY)


PREDICTED = torch.tensor([[1.0], [3.0]])
TRUE = torch.tensor([[2.0], [2.0]])


def share(truth, outputs):
    """An error relative to the truth: .5 of these, .67 the other way round."""
    return float(((truth - outputs).abs() / truth).mean())


def relative(form):
    """Return the same function with parameters of other names, in this order."""
    space = {"share": share}
    first, second = form.split()
    exec(f"def f({first}, {second}): return share({first}, {second})", space)
    return space["f"]


@pytest.mark.parametrize(
    "form",
    [
        "y_true y_pred",
        "y_true y_score",
        "Y_true y_prob",
        "targets outputs",
        "labels preds",
        "references predictions",
        "target input",
        "y y_hat",
        "ground_truth probabilities",
        "labels_true labels_pred",
        "actualValues predictedValues",
        "target_labels predicted_labels",
        "t o",
        "y p",
        "expected got",
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, partial])
def test_targets_come_first_where_the_names_of_parameters_say_so(form, wrap):
    metric = make_metric(wrap(relative(form)), higher_is_better=False)
    assert metric.value(PREDICTED, TRUE) == 0.5


@pytest.mark.parametrize(
    "form", ["a b", "outputs targets", "y t", "preds labels", "x y"]
)
def test_outputs_come_first_elsewhere(form):
    metric = make_metric(relative(form), higher_is_better=False)
    assert metric.value(TRUE, PREDICTED) == 0.5


@pytest.mark.parametrize("form", ["targets x", "w y_pred"])
def test_half_a_name_is_asked_about(form):
    function = relative(form)
    with pytest.raises(ConfigError, match="do not tell whether targets come first"):
        make_metric(function, higher_is_better=False)
    known = {"higher_is_better": False, "low": 0.0}
    found = make_metric(function, arguments="targets, outputs", **known)
    assert found.value(PREDICTED, TRUE) == 0.5
    found = make_metric(function, arguments="outputs, targets", **known)
    assert found.value(TRUE, PREDICTED) == 0.5


def test_a_function_without_room_for_outputs_and_targets_is_refused():
    def compute_metrics(eval_pred):
        return share(*eval_pred)

    def by_name(*, y_pred, y_true):
        return share(y_pred, y_true)

    with pytest.raises(ConfigError, match="takes one, 'eval_pred': wrap it in"):
        make_metric(compute_metrics, higher_is_better=False)
    with pytest.raises(ConfigError, match="takes none by its place: wrap it"):
        make_metric(by_name, higher_is_better=False)
    # The advice is right, and whatever takes any number of arguments takes two.
    for taken in (lambda o, t: compute_metrics((o, t)), lambda *both: share(*both)):
        metric = make_metric(taken, higher_is_better=False)
        assert metric.value(PREDICTED, TRUE) == share(PREDICTED, TRUE)


def test_the_order_of_a_module_is_that_of_its_forward():
    class Share(torch.nn.Module):
        def forward(self, y_true, y_pred):
            return share(y_true, y_pred)

    metric = make_metric(Share(), higher_is_better=False)
    assert metric.value(PREDICTED, TRUE) == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": "0"},
        {"high": [1]},
        {"low": torch.tensor(0.0)},
        {"name": 5},
        {"higher_is_better": "yes"},
    ],
)
def test_what_is_declared_has_its_kind(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"{name} must be .* or None, got"):
        make_metric(share, **{"higher_is_better": True} | wrong)


def test_the_order_of_a_known_metric_is_not_declared():
    for known in ("mcr", sk.log_loss):
        with pytest.raises(ConfigError, match="arguments is for a callable of your"):
            make_metric(known, arguments="targets, outputs")
    with pytest.raises(ConfigError, match="arguments must be"):
        make_metric(share, arguments="y, x", higher_is_better=False)

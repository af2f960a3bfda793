"""Registered metrics against golden vectors, naive loops and scikit-learn."""

import math

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import sklearn.metrics as oracle
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import confusion_counts, predict_labels
from metricopt.metrics.top_k import TopK
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded

# The same examples every time, and no clock: a busy machine must not fail a test.
steady = settings(
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
CASES = list(load_golden("metrics_classification"))
BINARY = [case for case in CASES if "scores" in case.inputs]
MULTI = [case for case in CASES if "logits" in case.inputs]
BINARY_FIELDS = {
    "mcr": "mcr",
    "f1": "f1",
    "jaccard": "jaccard_positive",
    "jaccard-macro": "jaccard_macro",
    "jaccard-legacy": "jaccard_legacy_equals_accuracy",
    "aucpr": "average_precision",
}
MULTI_FIELDS = {
    "mcr": "mcr",
    "top-1": "top1",
    "f-macro": "f1_macro_present",
    "jaccard-macro": "jaccard_macro_present",
    "aucpr": "aucpr_macro_over_present_classes",
}


def value(name, outputs, targets):
    return METRICS.get(name)().value(torch.as_tensor(outputs), torch.as_tensor(targets))


@pytest.mark.parametrize("case", BINARY, ids=lambda case: case.name)
def test_binary_golden(case):
    logit = (case.inputs["scores"] - case.settings["threshold"])[:, None]
    pair = torch.cat([torch.zeros_like(logit), logit], 1)
    for name, field in BINARY_FIELDS.items():
        for outputs in (logit, pair):
            actual = value(name, outputs, case.inputs["labels"])
            assert_golden(actual, case.expected[field], case.tolerance)
    counts = confusion_counts(logit[None], case.inputs["labels"])
    actual = [int(count[0, 1]) for count in counts]
    assert actual == case.expected["confusion_tp_fp_fn_tn"]


@pytest.mark.parametrize("case", MULTI, ids=lambda case: case.name)
def test_multi_class_golden(case):
    inputs = case.inputs["logits"], case.inputs["labels"]
    for name, field in MULTI_FIELDS.items():
        actual = value(name, *inputs)
        assert_golden(actual, case.expected[field], case.tolerance)
    actual = TopK(case.expected["k"]).value(*inputs)
    assert_golden(actual, case.expected["topk"], case.tolerance)


def naive_counts(predicted, targets, positive):
    """Count TP, FP, FN, TN example by example."""
    counts = [0, 0, 0, 0]
    for guess, truth in zip(predicted, targets, strict=True):
        if guess == positive:
            counts[0 if truth == positive else 1] += 1
        else:
            counts[2 if truth == positive else 3] += 1
    return counts


def naive(name, predicted, targets):
    """Return a count-based metric from its formula, with plain Python numbers."""
    present = sorted(set(targets))
    counts = {c: naive_counts(predicted, targets, c) for c in {*present, 1}}
    recalls = [counts[c][0] / (counts[c][0] + counts[c][2]) for c in present]
    accuracy = sum(counts[c][0] for c in present) / len(targets)

    def f1(c):
        tp, fp, fn, _ = counts[c]
        return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0

    def jaccard(c):
        tp, fp, fn, _ = counts[c]
        return tp / (tp + fp + fn) if tp + fp + fn else 0.0

    return {
        "mcr": lambda: 1 - accuracy,
        "jaccard-legacy": lambda: accuracy,
        "f1": lambda: f1(1),
        "jaccard": lambda: jaccard(1),
        "f-macro": lambda: sum(map(f1, present)) / len(present),
        "jaccard-macro": lambda: sum(map(jaccard, present)) / len(present),
        "g-mean": lambda: math.prod(recalls) ** (1 / len(recalls)),
        "worst-class-error": lambda: 1 - min(recalls),
    }[name]()


def sklearn_value(name, predicted, targets):
    """Return the same from scikit-learn."""
    macro = {"labels": np.unique(targets), "average": "macro", "zero_division": 0}

    def recalls():
        labels = np.unique(targets)
        return oracle.recall_score(targets, predicted, labels=labels, average=None)

    def g_mean():
        found = recalls()
        return np.exp(np.log(found).mean()) if found.all() else 0.0

    return {
        "mcr": lambda: oracle.zero_one_loss(targets, predicted),
        "jaccard-legacy": lambda: oracle.accuracy_score(targets, predicted),
        "f1": lambda: oracle.f1_score(targets, predicted, zero_division=0),
        "jaccard": lambda: oracle.jaccard_score(targets, predicted, zero_division=0),
        "f-macro": lambda: oracle.f1_score(targets, predicted, **macro),
        "jaccard-macro": lambda: oracle.jaccard_score(targets, predicted, **macro),
        "g-mean": g_mean,
        "worst-class-error": lambda: 1 - recalls().min(),
    }[name]()


MULTI_COUNTS = ("mcr", "jaccard-legacy", "f-macro", "jaccard-macro")
MULTI_COUNTS += ("g-mean", "worst-class-error")
BINARY_COUNTS = (*MULTI_COUNTS, "f1", "jaccard")


@st.composite
def problems(draw, classes):
    """Draw coarse outputs [B, N, C], so that ties abound, and labels [N]."""
    rows, examples = draw(st.integers(1, 3)), draw(st.integers(1, 12))
    levels = st.integers(-2, 2).map(float)
    shape = (rows, examples, classes)
    outputs = draw(arrays.arrays(np.float32, shape, elements=levels))
    labels = st.integers(0, max(classes, 2) - 1)
    targets = draw(arrays.arrays(np.int64, examples, elements=labels))
    return torch.from_numpy(outputs), torch.from_numpy(targets)


@pytest.mark.parametrize(
    ("classes", "names"), [(1, BINARY_COUNTS), (2, BINARY_COUNTS), (4, MULTI_COUNTS)]
)
@steady
@given(data=st.data())
def test_counts_equal_loop_and_sklearn(classes, names, data):
    outputs, targets = data.draw(problems(classes=classes))
    for name in names:
        batched = METRICS.get(name)().values(outputs, targets)
        assert batched.dtype == torch.float64
        for actual, row in zip(batched.tolist(), outputs, strict=True):
            predicted = predict_labels(row).tolist()
            assert actual == value(name, row, targets)
            assert actual == pytest.approx(naive(name, predicted, targets.tolist()))
            expected = sklearn_value(name, np.array(predicted), targets.numpy())
            assert actual == pytest.approx(expected)


def naive_average_precision(scores, targets):
    """Walk down the distinct scores; every one is a threshold."""
    area, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [t for s, t in zip(scores, targets, strict=True) if s >= threshold]
        area += (sum(chosen) / sum(targets) - recall) * sum(chosen) / len(chosen)
        recall = sum(chosen) / sum(targets)
    return area


@steady
@given(problems(classes=1))
def test_average_precision_equals_loop(problem):
    outputs, targets = problem
    scores, labels = outputs[0, :, 0].tolist(), targets.tolist()
    expected = naive_average_precision(scores, labels) if sum(labels) else 0.0
    assert value("aucpr", outputs[0], targets) == pytest.approx(expected)


@steady
@given(problems(classes=4), st.integers(1, 4))
def test_top_k_equals_loop(problem, k):
    outputs, targets = problem
    expected = []
    for row in outputs.tolist():
        hits = 0
        for logits, label in zip(row, targets.tolist(), strict=True):
            order = sorted(range(4), key=lambda c, logits=logits: (-logits[c], c))
            hits += label in order[:k]
        expected.append(hits / len(targets))
    assert TopK(k).values(outputs, targets).tolist() == pytest.approx(expected)


def test_top_k_equals_sklearn_without_ties():
    generator = seeded(0)
    outputs = torch.randn(200, 9, generator=generator)
    targets = torch.randint(9, (200,), generator=generator)
    expected = oracle.top_k_accuracy_score(targets, outputs, k=5, labels=np.arange(9))
    assert value("top-5", outputs, targets) == pytest.approx(expected)
    # Top-1 is accuracy, under ties, too.
    outputs, targets = torch.zeros(6, 3), torch.tensor([0, 1, 2, 0, 0, 1])
    assert value("top-1", outputs, targets) == value("mcr", outputs, targets) == 0.5

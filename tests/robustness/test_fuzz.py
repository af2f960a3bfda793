"""Any model, targets, loader and metric: the right number, or one of our errors."""

import numpy as np
import sklearn.metrics as sk
import torch
import torchmetrics
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from metricopt import FinetuneOptions, LazySplit, MetricOptError, Split, finetune
from tests.robustness.heads import HEADS

TYPES = {
    "as the loss has it": lambda targets: targets,
    "int32": lambda targets: targets.int(),
    "uint8": lambda targets: targets.to(torch.uint8),
    "bool": lambda targets: targets > 0,
    "float64": lambda targets: targets.double(),
    "one axis more": lambda targets: targets[:, None],
    "one axis less": lambda targets: targets.reshape(-1),
}
FORMS = {
    "pair": lambda inputs, targets: (inputs, targets),
    "split": Split,
    "data set": TensorDataset,
    "loader": lambda inputs, targets: DataLoader(TensorDataset(inputs, targets), 16),
    "lazy": lambda inputs, targets: LazySplit(TensorDataset(inputs, targets)),
    "numpy": lambda inputs, targets: (inputs.numpy(), targets.numpy()),
}


def accumulator(name):
    kind = {"digits": "Multiclass", "several": "Multilabel"}.get(name, "Binary")
    size = {"digits": {"num_classes": 10}, "several": {"num_labels": 4}}.get(name, {})
    average = {"average": "micro"} if size else {}
    made = getattr(torchmetrics.classification, f"{kind}Accuracy")
    return made(**size, **average)


def own(head):
    """A metric as its user would write it, of what the network returns."""

    def score(outputs, targets):
        read = head.scores if head.decided is None else head.decided
        truth = targets.double().reshape(read(outputs).shape)
        return float(1 / (1 + (read(outputs) - truth).abs().mean()))

    return score


def metrics(head):
    """What a user may give, and the number it stands for, by name."""
    truth = "several" if head.data == "several" else "one"

    def labels(function):
        return lambda out, y: function(shaped(y), head.decided(out).numpy())

    def scores(function):
        return lambda out, y: function(shaped(y), head.scores(out).numpy())

    def shaped(targets):
        given = targets.numpy().reshape((-1, 4) if truth == "several" else -1)
        return given.astype(float if head.decided is None else int)

    found = {"own": (own(head), own(head))}
    if head.decided is None:
        error = torchmetrics.MeanAbsoluteError()
        return found | {
            "max_error": (sk.max_error, scores(sk.max_error)),
            "torchmetrics": (error, scores(sk.mean_absolute_error)),
            "mcr": ("mcr", None),
            "accuracy_score": (sk.accuracy_score, None),
        }
    one = truth == "one"
    hits = sk.accuracy_score if one else lambda y, out: np.mean(y == out)
    return found | {
        "mcr": ("mcr", labels(sk.zero_one_loss) if one else None),
        "zero_one_loss": (sk.zero_one_loss, labels(sk.zero_one_loss)),
        "log_loss": (sk.log_loss, scores(sk.log_loss) if one else None),
        "torchmetrics": (accumulator(head.data), labels(hits)),
        "mean_squared_error": (sk.mean_squared_error, None),
    }


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.data())
def test_a_right_number_or_one_of_our_errors(data):
    head = HEADS[data.draw(st.sampled_from(sorted(HEADS)), "head")]
    model, inputs, targets = head.problem()
    spec, direct = metrics(head)[data.draw(st.sampled_from(sorted(metrics(head))))]
    stored = TYPES[data.draw(st.sampled_from(sorted(TYPES)), "targets")](targets)
    form = data.draw(st.sampled_from(sorted(FORMS)), "form")
    own_loss = data.draw(st.booleans(), "own loss")
    split = FORMS[form](inputs, stored)
    loss = (lambda out, y: head.loss(out, y)) if own_loss else head.loss
    is_own = spec is not None and direct is not None and not isinstance(spec, str)
    better = True if is_own and spec.__module__ == __name__ else None
    options = FinetuneOptions(
        method=data.draw(st.sampled_from(["cma-es", "random-search"]), "method"),
        queries=12,
        no_harm=False,
        progress=False,
        higher_is_better=better,
        low=0.0 if spec != "mcr" else None,
        high=1e4 if spec != "mcr" else None,
    )
    try:
        found = finetune(
            model, train=split, observe=split, loss=loss, metric=spec, options=options
        )
    except MetricOptError:
        return
    assert direct is not None, "this metric makes no sense for these outputs"
    before = direct(model(inputs), stored)
    found.apply()
    reported = found.metric_before, found.metric_after
    measured = before, direct(model(inputs), stored)
    np.testing.assert_allclose(reported, measured, atol=1e-6)

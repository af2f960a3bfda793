"""Outputs of every kind, what a metric gets of them, and how the library calls it.

`prepared` is the independent oracle: it reads the outputs as `Head` says, and uses
nothing of the library.
"""

from functools import cache

import torch
from torch import nn

from metricopt.reading.callables import make_metric
from metricopt.reading.decision import meaning_of
from metricopt.tasks.judge import bound_metric
from tests.robustness.heads import FLAT, HEADS, Head, flat, network, vectors

WIDE = {"higher_is_better": True, "low": -1e5, "high": 1e5}
POSITIVE = nn.Softplus()


class TwoNumbers(Head):
    """Predicts two positive numbers for each example."""

    def problem(self):
        inputs, targets = vectors("diabetes")
        pairs = torch.stack([targets, targets.flip(0)], 1)
        return network(inputs.shape[1], 2, *self.layers), inputs, pairs


def _double(returned):
    return returned.detach().double()


MSE = nn.MSELoss()
CASES = {
    name: HEADS[name]
    for name in ("one logit", "flat logit", "two logits", "logits", "several logits")
} | {
    # Some functions of regression are defined for positive numbers only.
    "number": Head(1, (POSITIVE,), MSE, None, flat, "diabetes", True, True),
    "flat number": Head(
        1, (POSITIVE, FLAT), MSE, None, flat, "diabetes", floating=True
    ),
    "two numbers": TwoNumbers(2, (POSITIVE,), MSE, None, _double),
}
KINDS = {
    "b": ("one logit", "flat logit", "two logits"),
    "c": ("logits",),
    "s": ("several logits",),
    "v": ("number", "flat number"),
    "w": ("two numbers",),
}
BY_KIND = [(kind, case) for kind, cases in KINDS.items() for case in cases]
MARGINS = {
    "one logit": flat,
    "flat logit": flat,
    "two logits": lambda returned: _double(returned)[:, 1] - _double(returned)[:, 0],
    "logits": _double,
}


@cache
def returned(case):
    """Outputs of the network of a case and their targets, as its loss takes them."""
    model, inputs, targets = CASES[case].problem()
    return model(inputs).detach(), targets


def measured(spec, case, *, only=slice(None)):
    """The value of a metric, by the library."""
    outputs, targets = (part[only] for part in returned(case))
    meaning = meaning_of(outputs, targets, loss=CASES[case].loss)
    metric = bound_metric(make_metric(spec, **WIDE), meaning)
    columns = outputs[:, None] if outputs.ndim == 1 else outputs
    return metric.value(meaning.inward(columns), meaning.inward_targets(targets))


def prepared(expects, case, *, only=slice(None)):
    """What a metric has to be given: predictions and targets."""
    head = CASES[case]
    outputs, targets = (part[only] for part in returned(case))
    reads = {"labels": head.decided, "scores": head.scores}
    read = MARGINS[case] if expects == "decisions" else reads[expects]
    if case not in ("several logits", "two numbers"):
        targets = targets.flatten()
    truth = targets.double() if head.decided is None else targets.long()
    return read(outputs), truth


def every_class(case):
    """Probabilities of both classes where there are two, and of all else."""
    scores, truth = prepared("scores", case)
    return (torch.stack([1 - scores, scores], 1) if scores.ndim == 1 else scores), truth

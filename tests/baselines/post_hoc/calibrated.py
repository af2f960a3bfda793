"""Scores that are calibrated exactly: labels occur as often as they say."""

from typing import NamedTuple

import torch

from baselines.validation import Validation
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import predict_labels
from metricopt.tasks.sampling import Split


class Found(NamedTuple):
    """The improvements of a search, and the queries it made."""

    trace: tuple
    queries: int

    @property
    def best(self):
        return self.trace[-1]


def searched(find, outputs, targets, metric, *, limit=None, **settings):
    """Search on an observe split with these labels."""
    validation = Validation(metric, Split(targets[:, None], targets), limit=limit)
    trace = find(outputs, validation, **settings)
    assert trace[-1].queries <= validation.queries
    return Found(trace, validation.queries)


class LinearMetric(Metric):
    """Gain of every right prediction, summed, over a bound; counts its calls."""

    name = "linear"

    def __init__(self, gains, *, higher_is_better=True):
        self.gains = torch.tensor(gains, dtype=torch.float64)
        self.higher_is_better = higher_is_better
        self.calls = 0

    def _value(self, outputs, targets):
        self.calls += 1
        right = predict_labels(outputs) == targets
        gained = float((self.gains[targets] * right).mean() / self.gains.max())
        return gained if self.higher_is_better else 1 - gained


def calibrated(classes, *, grid=12):
    """Return logits [N, C] and labels: every composition of `grid` parts, as often.

    An example per part, so that the share of every class among the examples with the
    same probabilities is exactly its probability.
    """
    shares = [s for s in torch.cartesian_prod(*[torch.arange(1, grid)] * classes)]
    shares = [s for s in shares if int(s.sum()) == grid]
    probabilities = torch.stack(shares).repeat_interleave(grid, 0).double() / grid
    targets = torch.cat([torch.arange(classes).repeat_interleave(s) for s in shares])
    return probabilities.log(), targets


def best_decisions(outputs, gains):
    """Return the decisions that a linear metric is greatest at."""
    return (outputs.softmax(1) * torch.tensor(gains)).argmax(1)

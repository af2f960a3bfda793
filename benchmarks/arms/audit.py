"""The audit: compare metric evaluations made with those counted and reported."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from metricopt.errors import MetricOptError
from metricopt.metrics.base import Metric
from metricopt.metrics.wrapped import WrappedMetric
from metricopt.reading.outputs import Outputs, Targets


class FairnessError(MetricOptError):
    """A method made more metric queries than charged or allowed, or misreports them."""


class AuditedMetric(WrappedMetric):
    """A metric that counts its own evaluations, wherever they come from.

    Args:
        metric: what is evaluated.

    Attributes:
        evaluations: rows of outputs evaluated so far.
    """

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric)
        self.evaluations = 0

    def __deepcopy__(self, memo: object) -> "AuditedMetric":
        """Return itself: what a copy evaluates is evaluated here."""
        return self

    def _value(self, outputs: Outputs, targets: Targets) -> float:
        self.evaluations += 1
        return self.metric.value(outputs, targets)

    def _values(self, outputs: Outputs, targets: Targets) -> Tensor:
        values = self.metric.values(outputs, targets)
        self.evaluations += len(values)
        return values


def check_counts(
    name: str,
    *,
    evaluated: int,
    counted: int,
    reported: int,
    points: Sequence[int] = (),
    final: int | None = None,
) -> None:
    """Check that what a method made, was charged with and reports is the same.

    Args:
        name: name of the method.
        evaluated: metric evaluations that were made.
        counted: queries that were charged.
        reported: queries of all its rows, by its own account.
        points: queries of every point on the way.
        final: queries of the result; None if there is none yet.

    Raises:
        FairnessError: if evaluations bypassed the counter, the report differs, or the
            points do not lead up to the result.
    """
    if evaluated > counted:
        raise FairnessError(
            f"{name} evaluated the metric {evaluated} times and was charged with "
            f"{counted} queries: the others bypassed the counter"
        )
    if reported != counted:
        raise FairnessError(
            f"{name} reports {reported} metric queries for all its rows, and {counted} "
            "were counted"
        )
    if final is None:
        return
    if any(before > after for before, after in pairwise([0, *points, final])):
        raise FairnessError(
            f"the points on the way of {name} must have queries that go from 0 up to "
            f"the {final} of its result, got {', '.join(map(str, points))}"
        )


def check_budget(name: str, *, spent: int, allowed: int) -> None:
    """Check that one result cost no more than its budget.

    Raises:
        FairnessError: if it did.
    """
    if spent > allowed:
        raise FairnessError(
            f"{name} may spend {allowed} metric queries on one result, and spent "
            f"{spent}"
        )

"""Queries that fail: a metric that is undefined, or unreachable, at some phi."""

from contextlib import suppress
from typing import Any

from torch import Tensor

from metricopt.errors import MetricError, RangeError
from metricopt.metrics.base import Metric, WrappedMetric
from metricopt.metrics.constrained import metrics_of, over_each

MARGIN = 0.01
"""How much worse than the only value so far a failure is, on the metric's scale."""


class ForgivingMetric(WrappedMetric):
    """Takes the worst value so far for that of a query that fails, but for the first.

    So a search keeps away from where a metric is undefined, and a metric that is out of
    reach for a moment does not end it. A value beyond a promised range does.

    Args:
        metric: what is evaluated.
        most: failed queries that are forgiven; the next one is an error.
        retries: how often a query that fails is asked again at once.
        remedy: a sentence for the error, if the first query did not fail.

    Attributes:
        failures: messages of the failed queries.
    """

    def __init__(
        self, metric: Metric, most: int, retries: int = 0, remedy: str = ""
    ) -> None:
        super().__init__(metric)
        self.remedy = remedy
        self.failures: list[str] = []
        self._most, self._retries = most, retries
        self._known: list[float] = []

    @property
    def strict(self) -> Metric:
        """The same metric, which fails where this one would forgive.

        What it says of a part of the examples would be no worse than what is known of
        others: a failure there has no value.
        """
        return ForgivingMetric(self.metric, 0, self._retries, self.remedy)

    def _values(self, outputs: Any, targets: Any) -> Tensor:
        # All at once only where that asks nobody: a row must not be paid for twice.
        if type(self.metric)._values is not Metric._values:
            with suppress(MetricError):
                found = self.metric.values(outputs, targets)
                self._known += found.tolist()
                return found
        return super()._values(outputs, targets)

    def _value(self, outputs: Any, targets: Any) -> float:
        for left in reversed(range(1 + self._retries)):
            try:
                value = self.metric.value(outputs, targets)
            except RangeError:
                raise
            except MetricError as error:
                if left:
                    continue
                if not self._known or len(self.failures) >= self._most:
                    if self._known and self.remedy:
                        error.add_note(self.remedy)
                    raise
                self.failures.append(str(error))
            else:
                self._known.append(value)
                return value
        return self._worst()

    def _worst(self) -> float:
        """Return the worst value so far, or one that is a little worse than all."""
        least, most = min(self._known), max(self._known)
        # A value at the end of the scale stays: there may be no worse one.
        step = MARGIN * (self.high - self.low) if least == most else 0.0
        if self.higher_is_better:
            return max(least - step, min(least, self.low))
        return min(most + step, max(most, self.high))


def forgiving(metric: Metric, most: int, retries: int = 0, remedy: str = "") -> Metric:
    """Return a metric that forgives; of one with bounds, each part does for itself."""
    return over_each(metric, lambda part: ForgivingMetric(part, most, retries, remedy))


def strict(metric: Metric) -> Metric:
    """Return a metric, of which no part forgives any more."""
    return over_each(
        metric,
        lambda part: part.strict if isinstance(part, ForgivingMetric) else part,
    )


def failing(metric: Metric) -> list[ForgivingMetric]:
    """Return the parts of what `forgiving` made."""
    return [part for part in metrics_of(metric) if isinstance(part, ForgivingMetric)]

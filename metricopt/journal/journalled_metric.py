"""A metric whose answers are kept in a journal."""

from typing import Any

from metricopt.journal.digests import digest
from metricopt.journal.journal import Journal
from metricopt.metrics.base import Metric
from metricopt.metrics.wrapped import WrappedMetric


class JournalledMetric(WrappedMetric):
    """Asks a metric row by row, and only what the journal does not answer.

    Args:
        metric: what is evaluated.
        journal: what it said before, and where each new answer is written at once.
    """

    def __init__(self, metric: Metric, journal: Journal) -> None:
        super().__init__(metric)
        self._journal = journal

    def _value(self, outputs: Any, targets: Any) -> float:
        question = digest((outputs, targets))
        return self._journal.answer(
            question, lambda: self.metric.value(outputs, targets)
        )

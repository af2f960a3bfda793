"""What a column reads of records: values of one metric, and what counts as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.runs.record import RunRecord, TracePoint

Split = Literal["observe", "test"]

REPLICATE, META_TEST = "replicate", "meta-test"


@dataclass(frozen=True)
class Reading:
    """How the values of a column are read from records.

    Attributes:
        column: whose metric is read.
        unit: what counts as one value: `replicate` for the mean over its meta-tests, or
            `meta-test` for each of them.
    """

    column: Column
    unit: str = REPLICATE

    def finals(self, record: RunRecord, split: Split = "test") -> tuple[float, ...]:
        """Return the final values of a run, none if one of them is missing."""
        return self._counted(record.values(split, self.column.metric.label))

    def passed(self, point: TracePoint, split: Split = "test") -> tuple[float, ...]:
        """Return the values at a point of a trace, none if one of them is missing."""
        values = point.observe if split == "observe" else point.test
        return self._counted(values.get(self.column.metric.label, ()))

    def finished(self, record: RunRecord) -> bool:
        """Return whether a run is done with a finite test value for every meta-test."""
        return record.status == "done" and bool(self.finals(record))

    def all_finals(
        self, records: Sequence[RunRecord], split: Split = "test"
    ) -> list[float]:
        """Return the final values of several runs, one after the other."""
        return [value for record in records for value in self.finals(record, split)]

    def _counted(self, values: Sequence[float | None]) -> tuple[float, ...]:
        present = tuple(value for value in values if value is not None)
        if len(present) < len(values):
            return ()
        mean = stats.mean(present)
        if mean is None:
            return ()
        return (mean,) if self.unit == REPLICATE else present

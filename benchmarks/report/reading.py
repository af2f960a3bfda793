"""What a column reads of records: values of one metric, and what counts as one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.rows.contract import Row
from benchmarks.runs.record import RunRecord, TracePoint
from benchmarks.runs.spec import RunSpec

Split = Literal["observe", "test"]

REPLICATE, VALUE_FUNCTION, META_TEST = "replicate", "value function", "meta-test"
"""What can count as one value."""


@dataclass(frozen=True)
class Reading:
    """How the values of a column are read from records.

    Attributes:
        column: whose metric is read.
        replicated: whether the table has several replicates, each of which counts as
            one value: the mean over its value functions and meta-tests. If not, each
            value function of a run counts, or each meta-test if there is only one.
        rows: rows of the table, which say whose variant a row is and its budget.
    """

    column: Column
    replicated: bool = True
    rows: tuple[Row, ...] = ()

    @cached_property
    def _variants(self) -> dict[str, Row]:
        return {row.name: row for row in self.rows if row.budget is not None}

    def arm(self, record: RunRecord) -> str:
        """Return the name of the arm of a run, whatever its budget."""
        name = record.spec.row
        return self._variants[name].arm if name in self._variants else name

    def budget(self, record: RunRecord) -> int | None:
        """Return the budget that tells a run from others of its arm; None for none."""
        row = self._variants.get(record.spec.row)
        return None if row is None else row.budget

    def unit(self, spec: RunSpec) -> str:
        """Return what counts as one value of a run."""
        if self.replicated:
            return REPLICATE
        return VALUE_FUNCTION if spec.value_functions > 1 else META_TEST

    def is_aim_of(self, records: Iterable[RunRecord]) -> bool:
        """Return whether the runs work towards the metric that is read.

        Notes of a run are about that metric alone, whichever it is judged by as well.
        """
        return all(record.spec.metric == self.column.metric for record in records)

    def finals(self, record: RunRecord, split: Split = "test") -> tuple[float, ...]:
        """Return the final values of a run, none if one of them is missing."""
        values = record.values(split, self.column.metric.label)
        return self._counted(values, record.spec)

    def passed(
        self, record: RunRecord, point: TracePoint, split: Split = "test"
    ) -> tuple[float, ...]:
        """Return the values at a point of a run, none if one of them is missing."""
        values = point.observe if split == "observe" else point.test
        found = values.get(self.column.metric.label, ())
        return self._counted(found, record.spec)

    def finished(self, record: RunRecord) -> bool:
        """Return whether a run is done with a finite test value for every meta-test."""
        return record.status == "done" and bool(self.finals(record))

    def all_finals(
        self, records: Sequence[RunRecord], split: Split = "test"
    ) -> list[float]:
        """Return the final values of several runs, one after the other."""
        return [value for record in records for value in self.finals(record, split)]

    def by_number(self, records: Iterable[RunRecord]) -> dict[int, float]:
        """Return the test values of the finished runs of one row.

        Returns:
            Values by replicate; by value function or meta-test if there is only one.
        """
        return {
            record.spec.replicate if self.replicated else place: value
            for record in records
            if self.finished(record)
            for place, value in enumerate(self.finals(record))
        }

    def _counted(
        self, values: Sequence[float | None], spec: RunSpec
    ) -> tuple[float, ...]:
        present = [value for value in values if value is not None]
        if not present or len(present) < len(values):
            return ()
        parts = {REPLICATE: 1, VALUE_FUNCTION: spec.value_functions}
        size = max(1, len(present) // parts.get(self.unit(spec), len(present)))
        starts = range(0, len(present), size)
        means = (stats.mean(present[at : at + size]) for at in starts)
        return tuple(mean for mean in means if mean is not None)

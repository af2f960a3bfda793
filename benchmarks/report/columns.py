"""A column of a table: a data set with a metric, how its values are shown and read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from benchmarks.report import stats
from benchmarks.rows.contract import Row
from benchmarks.runs.record import RunRecord, TracePoint
from benchmarks.runs.spec import RunSpec, Unit, metric_of
from metricopt.errors import DataError
from metricopt.metrics.base import Metric

DECIMALS = {"fraction": 4, "nats": 4, "squared error": 3}
OTHER_DECIMALS = 2
"""Decimals of percent, ranks, seconds and whatever else a metric is in."""
MARGIN = 0.002
"""Default of `Column.margin`: below the sampling error of a test split of 10,000."""
NOTHING = "·"
"""Shown where there is no value."""


def in_unit(value: float, unit: str, sign: Literal["-", "+"] = "-") -> str:
    """Return a value in a unit: `.1532` for fractions, `92.31` for percent.

    Args:
        value: is shown without a minus where all its digits are 0.
        unit: decides how many decimals are shown.
        sign: "+" gives what is not negative a plus.
    """
    text = f"{value:{sign}z.{DECIMALS.get(unit, OTHER_DECIMALS)}f}"
    return re.sub(r"^([+-]?)0\.", r"\1.", text) if unit == "fraction" else text


def signed(value: float, unit: str) -> str:
    """Return a value in a unit with its sign, plus included."""
    return in_unit(value, unit, "+")


@dataclass(frozen=True)
class Column:
    """A data set and a metric. Direction and unit are those of the metric.

    Attributes:
        name: of the column.
        label: as printed, without the arrow.
        metric: the metric shown, any that its runs were judged by.
        runs: the `RunSpec.column` whose runs are shown; empty for the name. Several
            columns may show metrics of the same runs.
        paper_column: the column of the paper it reproduces, None if there is none.
        not_comparable: why it is not comparable with the paper; empty if it is.
        compare_metric: label of another metric of the runs, which is compared with the
            paper instead; empty for the metric itself.
        margin: the least difference that matters, as a share of the metric's range;
            what is surely closer counts as equal.
        test_per_train: examples tested on per example trained on, where replicates are
            random splits of the same examples; 0 where they share the test split.
    """

    name: str
    label: str
    metric: Unit
    runs: str = ""
    paper_column: str | None = None
    not_comparable: str = ""
    compare_metric: str = ""
    margin: float = MARGIN
    test_per_train: float = 0.0

    @cached_property
    def _metric(self) -> Metric:
        return metric_of(self.metric)

    @property
    def source(self) -> str:
        """The `RunSpec.column` whose runs are shown."""
        return self.runs or self.name

    @property
    def unit(self) -> str:
        """Unit of the metric, such as `fraction` or `percent`."""
        return self._metric.unit

    @property
    def higher_is_better(self) -> bool:
        """Direction of the metric."""
        return self._metric.higher_is_better

    @property
    def heading(self) -> str:
        """The label with an arrow in the better direction."""
        return f"{self.label} {'↑' if self.higher_is_better else '↓'}"

    @property
    def axis_label(self) -> str:
        """The label with unit and direction, on two lines."""
        better = "higher" if self.higher_is_better else "lower"
        return f"{self.label}\n({self.unit}, {better} is better)"

    @property
    def cost_label(self) -> str:
        """The label of the metric as a cost: less is better."""
        if not self.higher_is_better:
            return self.label
        return f"{self._metric.high:.0f} - {self.label}"

    @property
    def sign(self) -> float:
        """Factor from native differences to costs: lower is better."""
        return -1.0 if self.higher_is_better else 1.0

    @property
    def range(self) -> float:
        """Difference between the best and the worst possible value."""
        return self._metric.high - self._metric.low

    @property
    def equal_within(self) -> float:
        """The margin in the unit of the column."""
        return self.margin * self.range

    def cost(self, value: float) -> float:
        """Return a value as a cost in the unit of the column: 0 is the best."""
        return self._metric.high - value if self.higher_is_better else value

    def format(self, value: float) -> str:
        """Return a value in its unit: `.1532` for fractions, `92.31` for percent."""
        return in_unit(value, self.unit)

    def signed(self, value: float) -> str:
        """Return a value in its unit with its sign, plus included."""
        return signed(value, self.unit)

    def spread(self, centre: float | None, deviation: float | None) -> str:
        """Return `mean±deviation` in the unit; `·` without a mean."""
        if centre is None:
            return NOTHING
        text = self.format(centre)
        return text if deviation is None else f"{text}±{self.format(deviation)}"

    def summary(self, values: Sequence[float]) -> str:
        """Return mean and sample standard deviation of some values, in the unit."""
        return self.spread(stats.mean(values), stats.sample_std(values))


def find_column(columns: Sequence[Column], name: str) -> Column:
    """Return the column of a name.

    Raises:
        DataError: if there is none.
    """
    for column in columns:
        if column.name == name:
            return column
    known = ", ".join(column.name for column in columns)
    raise DataError(f"there is no column {name!r}; known: {known}")


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

    def entry(self, record: RunRecord) -> str:
        """Return the name of the entry of a run, whatever its budget."""
        name = record.spec.row
        return self._variants[name].entry if name in self._variants else name

    def budget(self, record: RunRecord) -> int | None:
        """Return the budget that tells a run from others of its entry, if any."""
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

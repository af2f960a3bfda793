"""Records to judged cells: one cell per block, row and column, all replicates in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from benchmarks.report import stats
from benchmarks.report.columns import REPLICATE, VALUE_FUNCTION, Column, Reading
from benchmarks.report.layout import Block, TableLayout, check_records
from benchmarks.report.paper_values import PaperValue
from benchmarks.report.stats import LEVEL, Comparison
from benchmarks.rows.contract import Row
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import sort_records

BETTER, WORSE, EQUAL = "better", "worse", "equal"
NOT_SHOWN, UNTESTED = "not shown", "not tested"


@dataclass(frozen=True)
class Cell:
    """What the runs of one entry say, and how it is judged.

    Attributes:
        block, row, column: its place.
        records: every record of the cell, failed ones included, by replicate.
        values: test metric of the finished runs, native unit; see `Reading.by_number`.
        unit: what there is one value of; see `Reading.unit`.
        paper: the paper's number, None if there is none.
        against_base: comparison with its base row, None if there is none.
        against_rival: the same with the layout's rival row.
        gap_closed: share of the threshold shift's gain, see `stats.gap_closed`.
    """

    block: Block
    row: Row
    column: Column
    records: tuple[RunRecord, ...]
    values: Mapping[int, float]
    unit: str = REPLICATE
    paper: PaperValue | None = None
    against_base: Comparison | None = None
    against_rival: Comparison | None = None
    gap_closed: float | None = None

    @property
    def all_values(self) -> tuple[float, ...]:
        """All values, in order."""
        return tuple(self.values.values())

    @property
    def mean(self) -> float | None:
        """Mean of all values, native unit."""
        return stats.mean(self.all_values)

    @property
    def std(self) -> float | None:
        """Sample standard deviation of all values, native unit."""
        return stats.sample_std(self.all_values)

    @property
    def costs(self) -> dict[int, float]:
        """Values turned so that lower is better."""
        return {key: self.column.sign * v for key, v in self.values.items()}

    @property
    def theta(self) -> set[str | None]:
        """Digests of the networks its records fine-tune, where they tell."""
        return {record.data.get("theta") for record in self.records}

    @property
    def tested(self) -> bool:
        """Whether it is tested: its row has a base row and no budget of its own."""
        return self.row.base_row is not None and self.row.budget is None

    @property
    def verdict(self) -> str:
        """How it compares with its base row; empty for a row that is not tested."""
        return _verdict(self.against_base) if self.tested else ""

    @property
    def rival_verdict(self) -> str:
        """How it compares with the rival row."""
        return _verdict(self.against_rival)

    @property
    def compared_values(self) -> Mapping[int, float]:
        """What is compared with the paper: values of this or of another metric."""
        label = self.column.compare_metric
        if not label:
            return self.values
        found = {
            record.spec.replicate: _mean(record.values("test", label))
            for record in self.finished
        }
        return {key: value for key, value in found.items() if value is not None}

    @property
    def compared(self) -> float | None:
        """The mean of what is compared with the paper."""
        return stats.mean(tuple(self.compared_values.values()))

    @property
    def paper_difference(self) -> float | None:
        """What is compared minus the paper's number, native unit."""
        if self.paper is None or self.compared is None:
            return None
        return self.compared - self.paper.value

    @property
    def paper_verdict(self) -> str:
        """How it compares with the paper, at the printed precision."""
        difference = self.paper_difference
        if difference is None:
            return ""
        reason = self.column.not_comparable or self.block.not_comparable
        if reason:
            return f"not comparable: {reason}"
        short = self.column.format(self.column.sign * difference)
        if float(short) <= 0:
            return "reaches the paper"
        return f"short of it by {short}"

    @property
    def finished(self) -> list[RunRecord]:
        """The records that gave a number."""
        reading = Reading(self.column)
        return [record for record in self.records if reading.finished(record)]

    @property
    def trouble(self) -> str:
        """Runs that gave no number, such as `diverged 1/5`; empty without any."""
        reading = Reading(self.column)
        bad = [record for record in self.records if not reading.finished(record)]
        diverged = sum(record.status == "diverged" for record in bad)
        counts = {"diverged": diverged, "failed": len(bad) - diverged}
        total = len(self.records)
        return ", ".join(f"{name} {n}/{total}" for name, n in counts.items() if n)

    def note(self, name: str) -> float | None:
        """Return the mean of a note over finished replicates, None if none has it."""
        found = (note_value(record, name) for record in self.finished)
        return stats.mean([value for value in found if value is not None])


def note_value(record: RunRecord, name: str) -> float | None:
    """Return a note of a record as one number: the mean if it is a list."""
    value = record.notes.get(name)
    return _mean(value if isinstance(value, list) else [value])


def judge(layout: TableLayout, records: Sequence[RunRecord]) -> tuple[Cell, ...]:
    """Make and judge every cell that has a record, in the order of the layout.

    A question is one row against its base over the columns of a block; p values are
    adjusted over it. Rows `<entry>-q<N>` are not tested: they belong to the comparison
    at equal queries.

    Raises:
        DataError: if the records may not share one table.
    """
    check_records(layout, records)
    layout = layout.fitted(records)
    cells = _collect(layout, records)
    places = {(c.block.name, c.row.name, c.column.name): c for c in cells}
    compared = [_compare(layout, cell, places) for cell in cells]
    return tuple(
        cell
        for _, own in groupby(compared, key=lambda cell: (cell.block, cell.row))
        for cell in _adjusted(list(own))
    )


def _adjusted(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a row with the p values of its questions adjusted."""
    margins = [cell.column.equal_within for cell in cells]
    bases = stats.adjust([c.against_base if c.tested else None for c in cells], margins)
    rivals = stats.adjust([cell.against_rival for cell in cells], margins)
    return [
        replace(cell, against_base=base or cell.against_base, against_rival=rival)
        for cell, base, rival in zip(cells, bases, rivals, strict=True)
    ]


def _collect(layout: TableLayout, records: Sequence[RunRecord]) -> list[Cell]:
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in sort_records(records):
        spec = record.spec
        groups.setdefault((spec.block, spec.row, spec.column), []).append(record)
    cells = []
    for block in layout.blocks:
        for row in layout.rows:
            for column in layout.columns:
                place = (block.name, row.name, column.source)
                # Runs whose result is judged by the metric of the column.
                found = [
                    record
                    for record in groups.get(place, [])
                    if column.metric.label in [u.label for u in record.spec.metrics]
                ]
                if found:
                    reading = layout.reading(column)
                    cells.append(
                        Cell(
                            *(block, row, column, tuple(found)),
                            values=reading.by_number(found),
                            unit=reading.unit(found[0].spec),
                            paper=layout.paper_value(row, column, block),
                        )
                    )
    return cells


def _compare(
    layout: TableLayout, cell: Cell, places: dict[tuple[str, str, str], Cell]
) -> Cell:
    """Fill in what depends on other cells of the same block and column."""

    def other(row: str | None) -> Cell | None:
        return places.get((cell.block.name, row or "", cell.column.name))

    rival_row = cell.row.rival_row or layout.rival_row
    base, rival = other(cell.row.base_row), other(rival_row)
    if not cell.tested or cell.row.name == rival_row:
        rival = None
    several = layout.is_replicated(cell.column)
    if rival is not None and not several and rival.theta != cell.theta:
        # One network against another: the spread of meta-tests says nothing of that.
        rival = None
    ends = (other(layout.loss_only_row), other(layout.threshold_shift_row))
    return replace(
        cell,
        against_base=against(base, cell),
        against_rival=against(rival, cell),
        gap_closed=_gap(cell, *ends),
    )


def against(base: Cell | None, cell: Cell) -> Comparison | None:
    """Compare a cell with its base, None if there is nothing to compare.

    Replicates are paired, and so are the meta-tests or value functions of rows with the
    same starts. Against the meta-tests of such a row, a value function is held by the
    mean of its own: the difference of the means is the mean of the differences. The
    error is that over value functions, for these meta-tests.
    """
    if base is None:
        return None
    first, second = base.costs, cell.costs
    if cell.unit == REPLICATE:
        ratio = cell.column.test_per_train
        return stats.compare(first, second, paired=True, test_per_train=ratio)
    alike = base.row.same_starts and cell.row.same_starts
    if alike and base.unit != cell.unit:
        first, second = (
            costs if side.unit == VALUE_FUNCTION else _as_one(costs)
            for side, costs in ((base, first), (cell, second))
        )
        alike = False
    return stats.compare(first, second, paired=alike)


def _as_one(costs: Mapping[int, float]) -> dict[int, float]:
    whole = stats.mean(list(costs.values()))
    return {} if whole is None else {0: whole}


def _gap(cell: Cell, loss_only: Cell | None, shift: Cell | None) -> float | None:
    if loss_only is None or shift is None:
        return None
    if cell.unit == REPLICATE:
        # The share is of the same replicates above and below.
        shared = set(loss_only.values) & set(cell.values) & set(shift.values)
        loss_only, cell, shift = (
            replace(
                entry, values={r: v for r, v in entry.values.items() if r in shared}
            )
            for entry in (loss_only, cell, shift)
        )
    reached, whole = against(loss_only, cell), against(loss_only, shift)
    if reached is None or whole is None:
        return None
    return stats.gap_closed(whole, reached)


def _verdict(comparison: Comparison | None) -> str:
    if comparison is None or comparison.p_holm is None:
        return UNTESTED
    if comparison.p_holm < LEVEL:
        return BETTER if comparison.gain > 0 else WORSE
    equal = comparison.p_equal_holm
    return EQUAL if equal is not None and equal < LEVEL else NOT_SHOWN


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values there are."""
    return stats.mean([float(value) for value in values if value is not None])

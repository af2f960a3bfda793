"""Records to judged cells: one cell per block, row and column, all replicates in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks import stats
from benchmarks.layout import Block, Column, Row, TableLayout, split_budget
from benchmarks.paper_values import PaperValue
from benchmarks.records import RunRecord, sort_records

LEVEL = 0.05
BETTER, WORSE = "better than its base loss", "worse"
SAME, UNTESTED = "no difference", "not tested"


@dataclass(frozen=True)
class Cell:
    """What the replicates of one arm say, and how it is judged.

    Attributes:
        block, row, column: its place.
        records: every record of the cell, failed ones included, by replicate.
        values: test metric of each finished replicate, native unit, the mean over its
            meta-tests, by replicate.
        differences: base minus this in costs for each replicate both have finished;
            positive is better.
        p_value: paired t-test of the differences, None where there is none.
        p_holm: the same, adjusted over the table.
        paper: the paper's number, None if there is none.
        gap_closed: share of the threshold shift's gain, see `stats.gap_closed`.
    """

    block: Block
    row: Row
    column: Column
    records: tuple[RunRecord, ...]
    values: dict[int, float]
    differences: tuple[float, ...] = ()
    p_value: float | None = None
    p_holm: float | None = None
    paper: PaperValue | None = None
    gap_closed: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean over replicates, native unit."""
        return stats.mean(list(self.values.values()))

    @property
    def std(self) -> float | None:
        """Sample standard deviation over replicates, native unit."""
        return stats.sample_std(list(self.values.values()))

    @property
    def verdict(self) -> str:
        """How it compares with its base row; empty for a row without one."""
        if self.row.base_row is None or split_budget(self.row.name)[1] is not None:
            return ""
        centre = stats.mean(self.differences)
        if self.p_holm is None or centre is None:
            return UNTESTED
        if self.p_holm >= LEVEL:
            return SAME
        return BETTER if centre > 0 else WORSE

    @property
    def compared(self) -> float | None:
        """What is held against the paper: the mean, or that of the column's note."""
        note = self.column.compare_note
        return self.note(note) if note else self.mean

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
    def trouble(self) -> str:
        """Runs that gave no number, such as `diverged 1/5`; empty without any."""
        parts = []
        for status in ("diverged", "failed"):
            count = sum(_outcome(record) == status for record in self.records)
            if count:
                parts.append(f"{status} {count}/{len(self.records)}")
        return ", ".join(parts)

    def note(self, name: str) -> float | None:
        """Return the mean of a note over finished replicates, None if none has it."""
        finished = (record for record in self.records if record.finished)
        found = (note_value(record, name) for record in finished)
        return stats.mean([value for value in found if value is not None])


def note_value(record: RunRecord, name: str) -> float | None:
    """Return a note of a record as one number: the mean if it is a list."""
    value = record.notes.get(name)
    values = value if isinstance(value, list) else [value]
    return stats.mean([float(item) for item in values if item is not None])


def replicate_mean(values: Sequence[float | None] | None) -> float | None:
    """Return the mean over the meta-tests of a replicate, None if one is missing."""
    if not values:
        return None
    present = [value for value in values if value is not None]
    return stats.mean(present) if len(present) == len(values) else None


def judge(layout: TableLayout, records: Sequence[RunRecord]) -> tuple[Cell, ...]:
    """Make and judge every cell that has a record, in the order of the layout.

    Rows `<arm>-q<N>` are not tested: they belong to the comparison at equal queries,
    and would only dilute the adjustment.

    Raises:
        DataError: if the records may not share one table.
    """
    layout.check_records(records)
    cells = _collect(layout, records)
    places = {_place(cell): cell for cell in cells}
    compared = [_compare(layout, cell, places) for cell in cells]
    adjusted = stats.holm([cell.p_value for cell in compared])
    return tuple(
        replace(cell, p_holm=p) for cell, p in zip(compared, adjusted, strict=True)
    )


def _collect(layout: TableLayout, records: Sequence[RunRecord]) -> list[Cell]:
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in sort_records(records):
        spec = record.spec
        groups.setdefault((spec.block, spec.row, spec.column), []).append(record)
    cells = []
    for block in layout.blocks:
        for row in layout.rows:
            for column in layout.columns:
                found = groups.get((block.name, row.name, column.name))
                if found:
                    paper = layout.paper_value(row, column)
                    values = _values(found)
                    cell = Cell(block, row, column, tuple(found), values, paper=paper)
                    cells.append(cell)
    return cells


def _compare(
    layout: TableLayout, cell: Cell, places: dict[tuple[str, str, str], Cell]
) -> Cell:
    """Fill in what depends on other cells of the same block and column."""

    def other(row: str | None) -> Cell | None:
        return places.get((cell.block.name, row or "", cell.column.name))

    base = other(cell.row.base_row)
    gap = _gap(cell, other(layout.loss_only_row), other(layout.threshold_shift_row))
    if base is None:
        return replace(cell, gap_closed=gap)
    shared = sorted(set(cell.values) & set(base.values))
    sign = cell.column.sign
    differences = tuple(sign * (base.values[r] - cell.values[r]) for r in shared)
    tested = split_budget(cell.row.name)[1] is None
    p_value = stats.paired_p_value(differences) if tested else None
    return replace(cell, differences=differences, p_value=p_value, gap_closed=gap)


def _gap(cell: Cell, loss_only: Cell | None, shift: Cell | None) -> float | None:
    if loss_only is None or shift is None:
        return None
    arms = (loss_only, cell, shift)
    shared = sorted(set.intersection(*(set(arm.values) for arm in arms)))
    sign = cell.column.sign
    costs = [[sign * arm.values[r] for r in shared] for arm in arms]
    return stats.gap_closed(*costs)


def _values(records: Sequence[RunRecord]) -> dict[int, float]:
    values = {}
    for record in records:
        value = replicate_mean(record.test)
        if record.finished and value is not None:
            values[record.spec.replicate] = value
    return values


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.block.name, cell.row.name, cell.column.name


def _outcome(record: RunRecord) -> str:
    """Status as shown: a done run without a finite test value has failed."""
    if record.status == "done" and not record.finished:
        return "failed"
    return record.status

"""Records to tables: pure functions from judged cells to pandas.

None of these tables depends on wall time except `time_table`, so that a run which was
killed and continued gives the same tables as an undisturbed one.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from benchmarks import stats
from benchmarks.cells import (
    BETTER,
    SAME,
    UNTESTED,
    WORSE,
    Cell,
    replicate_mean,
)
from benchmarks.curves import at_budget
from benchmarks.layout import Block, Column, TableLayout, split_budget
from benchmarks.paper_values import (
    ROW_LABELS,
    PaperValue,
    find_paper_value,
    paper_rows,
)
from benchmarks.records import RunRecord

if TYPE_CHECKING:
    from pandas import DataFrame

SIGNS = {BETTER: "+", WORSE: "-", SAME: "=", UNTESTED: "?", "": ""}
NOTHING = "·"


def main_table(layout: TableLayout, cells: Sequence[Cell], block: Block) -> "DataFrame":
    """Return the table of one block as text: rows x columns, the paper's rows below.

    A block without a record has no lines.

    Args:
        layout: the experiment.
        cells: judged cells, see `cells.judge`.
        block: the part to show.
    """
    own = [cell for cell in cells if cell.block == block]
    lines = []
    for row in layout.rows:
        in_row = {cell.column.name: cell for cell in own if cell.row == row}
        if in_row and split_budget(row.name)[1] is None:
            texts = [_main_text(in_row.get(column.name)) for column in layout.columns]
            lines.append([row.label, *texts, _queries(list(in_row.values()))])
    if lines:
        lines += _paper_lines(layout, block)
    headings = [column.heading for column in layout.columns]
    return _frame(lines, ["method", *headings, "queries"])


def paper_table(layout: TableLayout, cells: Sequence[Cell]) -> "DataFrame":
    """Return every cell the paper prints too: ours, the paper's, difference, verdict.

    Rows of the paper that no row of the layout reproduces follow, without our number.

    Args:
        layout: the experiment.
        cells: judged cells, see `cells.judge`.
    """
    lines = []
    for block in layout.blocks:
        own = [cell for cell in cells if cell.block == block]
        lines += [_beside(cell) for cell in own if cell.paper_difference is not None]
        lines += _not_built(layout, block) if own else []
    names = ["block", "column", "method", "ours", "paper", "difference", "verdict"]
    return _frame(lines, names)


def rival_table(layout: TableLayout, cells: Sequence[Cell]) -> "DataFrame":
    """Return how every tested row compares with its rival row, in costs.

    Args:
        layout: the experiment.
        cells: judged cells, see `cells.judge`.
    """
    labels = {row.name: row.label for row in layout.rows}
    lines = []
    for cell in cells:
        versus = cell.against_rival
        if versus is not None:
            rival = labels[cell.row.rival_row or layout.rival_row or ""]
            place = [cell.block.label, cell.column.heading, cell.row.label, rival]
            ends = [_signed(end, cell.column) for end in versus.interval or ()]
            interval = f"{ends[0]} to {ends[1]}" if ends else NOTHING
            gain = _signed(versus.gain, cell.column)
            p_value = _p_text(versus.p_holm)
            lines.append([*place, gain, interval, p_value, cell.rival_verdict])
    numbers = ["difference", "95 % interval", "p", "verdict"]
    return _frame(lines, ["block", "column", "method", "against", *numbers])


def long_table(cells: Sequence[Cell]) -> "DataFrame":
    """Return one line of numbers per cell, in native units; differences in costs.

    Args:
        cells: judged cells, see `cells.judge`.
    """
    import pandas

    return pandas.DataFrame([_long_line(cell) for cell in cells])


def gap_table(layout: TableLayout, cells: Sequence[Cell], block: Block) -> "DataFrame":
    """Return the share of the threshold shift's gain each row reaches, in percent.

    Rows with a value function also show its Spearman correlation with the metric, and
    that alone in a column without a threshold shift.

    Args:
        layout: the experiment.
        cells: judged cells, see `cells.judge`.
        block: the part to show.
    """
    ends = (layout.loss_only_row, layout.threshold_shift_row)
    own = [cell for cell in cells if cell.block == block]
    shifted = {c.column for c in own if c.row.name == layout.threshold_shift_row}
    lines = []
    for row in layout.rows:
        in_row = {cell.column.name: cell for cell in own if cell.row == row}
        closed = any(cell.gap_closed is not None for cell in in_row.values())
        healthy = any(cell.note("spearman") is not None for cell in in_row.values())
        if row.name not in ends and (closed or healthy):
            found = [in_row.get(column.name) for column in layout.columns]
            lines.append([row.label, *(_gap_text(cell, shifted) for cell in found)])
    return _frame(lines, ["method", *(column.heading for column in layout.columns)])


def equal_queries_table(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, column: Column
) -> "DataFrame":
    """Return what each arm reaches within each budget of metric queries.

    Args:
        layout: the experiment.
        records: all its records.
        block: the part to show.
        column: the column to show.
    """
    own = [r for r in records if (r.spec.block, r.spec.column) == _at(block, column)]
    lines = []
    for arm, label in layout.compared_arms.items():
        texts = [
            _budget_text(layout, own, arm, q, column) for q in layout.query_budgets
        ]
        if any(text != NOTHING for text in texts):
            lines.append([label, *texts])
    return _frame(lines, ["method", *(f"{q:,} queries" for q in layout.query_budgets)])


def time_table(layout: TableLayout, records: Sequence[RunRecord]) -> "DataFrame":
    """Return queries, steps and mean wall seconds by phase for one run of each row.

    Args:
        layout: the experiment.
        records: all its records.
    """
    phases = sorted({name for record in records for name in record.seconds} - {"total"})
    lines = []
    for row in layout.rows:
        own = [record for record in records if record.spec.row == row.name]
        if own:
            lines.append([row.label, str(len(own)), *_spent(own, phases)])
    counts = ["queries", "shared queries", "steps"]
    seconds = [f"{phase} s" for phase in [*phases, "total"]]
    return _frame(lines, ["method", "runs", *counts, *seconds])


def number_text(cell: Cell) -> str:
    """Return `mean±std (n)` in the unit of the column, or what went wrong instead."""
    if cell.mean is None:
        return cell.trouble
    show = cell.column.format
    spread = "" if cell.std is None else f"±{show(cell.std)}"
    return f"{show(cell.mean)}{spread} ({len(cell.all_values)})"


def _compared_text(cell: Cell) -> str:
    """Return what is held against the paper, which is not always the metric."""
    note = cell.column.compare_note
    if not note or cell.compared is None:
        return number_text(cell)
    return f"{cell.column.format(cell.compared)} ({note.removeprefix('test_')})"


def _main_text(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    parts = [number_text(cell)]
    if cell.mean is not None:
        parts += [SIGNS[cell.verdict], cell.trouble]
    return " ".join(part for part in parts if part)


def _paper_lines(layout: TableLayout, block: Block) -> list[list[str]]:
    """Return one line per row of the paper, `*` where it is not comparable."""
    table = layout.paper_table or ""
    lines = []
    for row in paper_rows(table):
        texts = [_paper_text(table, row, column, block) for column in layout.columns]
        if any(text != NOTHING for text in texts):
            lines.append([f"paper: {ROW_LABELS[row]}", *texts, ""])
    return lines


def _paper_text(table: str, row: str, column: Column, block: Block) -> str:
    printed = find_paper_value(table, row, column.paper_column or "")
    if printed is None:
        return NOTHING
    apart = column.not_comparable or block.not_comparable
    return f"{_printed_text(printed, column)}{'*' if apart else ''}"


def _printed_text(printed: PaperValue, column: Column) -> str:
    """Return the paper's number as ours are shown, with its deviation if it has one."""
    spread = "" if printed.std is None else f"±{column.format(printed.std)}"
    return f"{column.format(printed.value)}{spread}"


def _beside(cell: Cell) -> list[str]:
    """Return the line of a cell that the paper has too."""
    return [
        cell.block.label,
        cell.column.heading,
        cell.row.label,
        _compared_text(cell),
        _printed_text(cell.paper, cell.column),
        _signed(cell.paper_difference, cell.column),
        cell.paper_verdict,
    ]


def _not_built(layout: TableLayout, block: Block) -> list[list[str]]:
    """Return a line for each number of the paper whose method the layout lacks."""
    table = layout.paper_table or ""
    built = {row.paper_row for row in layout.rows}
    lines = []
    for row in paper_rows(table):
        for column in layout.columns:
            printed = find_paper_value(table, row, column.paper_column or "")
            if row not in built and printed is not None:
                place = [block.label, column.heading, ROW_LABELS[row]]
                text = _printed_text(printed, column)
                lines.append([*place, "not built yet", text, NOTHING, NOTHING])
    return lines


def _signed(value: float, column: Column) -> str:
    return f"{'+' if value >= 0 else ''}{column.format(value)}"


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return NOTHING
    return "<.001" if p_value < 0.001 else f"{p_value:.3f}".removeprefix("0")


def _gap_text(cell: Cell | None, shifted: set[Column]) -> str:
    if cell is None:
        return NOTHING
    closed, spearman = cell.gap_closed, cell.note("spearman")
    rho = "" if spearman is None else f"rho {spearman:.2f}"
    if cell.column not in shifted:
        return rho or NOTHING
    share = "in noise" if closed is None else f"{100 * closed:.0f} %"
    return f"{share} ({rho})" if rho else share


def _budget_text(
    layout: TableLayout,
    records: Sequence[RunRecord],
    arm: str,
    queries: int,
    column: Column,
) -> str:
    test = at_budget(records, arm, "test", queries, layout.unit)
    observe = at_budget(records, arm, "observe", queries, layout.unit)
    centre, spread = stats.mean(test), stats.sample_std(test)
    if centre is None:
        return NOTHING
    text = column.format(centre)
    text += "" if spread is None else f"±{column.format(spread)}"
    seen = stats.mean(observe)
    return text if seen is None else f"{text} / {column.format(seen)}"


def _long_line(cell: Cell) -> dict[str, object]:
    versus = cell.against_base
    interval = (versus and versus.interval) or (None, None)
    return {
        "block": cell.block.name,
        "row": cell.row.name,
        "column": cell.column.name,
        "metric": cell.column.metric,
        "unit": cell.column.unit,
        "n": len(cell.all_values),
        "trouble": cell.trouble,
        "mean": cell.mean,
        "std": cell.std,
        "observe_mean": _observe_mean(cell),
        "base_row": cell.row.base_row,
        "cost_gain": versus and versus.gain,
        "cost_gain_low": interval[0],
        "cost_gain_high": interval[1],
        "p": versus and versus.p_value if cell.tested else None,
        "p_holm": versus and versus.p_holm,
        "verdict": cell.verdict,
        "paper": None if cell.paper is None else cell.paper.value,
        "difference": cell.paper_difference,
        "paper_verdict": cell.paper_verdict,
        "queries": _count(cell, lambda record: record.queries),
        "shared_queries": _count(cell, lambda record: record.shared_queries),
        "gradient_steps": _count(cell, lambda record: record.gradient_steps),
        "gap_closed": cell.gap_closed,
        "spearman": cell.note("spearman"),
    }


def _observe_mean(cell: Cell) -> float | None:
    finished = (record for record in cell.records if record.finished)
    values = (replicate_mean(record.observe) for record in finished)
    return stats.mean([value for value in values if value is not None])


def _count(cell: Cell, read: Callable[[RunRecord], int]) -> float | None:
    return stats.mean([read(record) for record in cell.records if record.finished])


def _queries(cells: Sequence[Cell]) -> str:
    return _range([record.queries for cell in cells for record in cell.records])


def _spent(records: Sequence[RunRecord], phases: Sequence[str]) -> list[str]:
    """Return counts, and mean seconds over the runs that tell those of a phase."""
    counts = [
        _range([record.queries for record in records]),
        _range([record.shared_queries for record in records]),
        _range([record.gradient_steps for record in records]),
    ]
    told = [[record.seconds.get(phase) for record in records] for phase in phases]
    means = [stats.mean([value for value in own if value is not None]) for own in told]
    total = stats.mean([record.total_seconds for record in records])
    texts = [NOTHING if mean is None else f"{mean:.2f}" for mean in [*means, total]]
    return [*counts, *texts]


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _at(block: Block, column: Column) -> tuple[str, str]:
    return block.name, column.name


def _frame(lines: Sequence[Sequence[str]], names: Sequence[str]) -> "DataFrame":
    import pandas

    return pandas.DataFrame(lines, columns=list(names), dtype="object")

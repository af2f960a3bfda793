"""Records to tables: pure functions from judged cells to pandas.

None of these tables depends on wall time, so that a run which was killed and continued
gives the same tables as an undisturbed one. `cells` are all cells of an experiment, see
`cells.judge`; `records` are all its records.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.cells import BETTER, EQUAL, NOT_SHOWN, WORSE, Cell
from benchmarks.report.columns import NOTHING, Column, Reading
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.paper_values import (
    ROW_LABELS,
    PaperValue,
    find_paper_value,
    paper_rows,
)
from benchmarks.report.render import count_range, text_table
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from pandas import DataFrame

SIGNS = {BETTER: "+", WORSE: "-", EQUAL: "=", NOT_SHOWN: "?"}
"""Sign of a verdict; none for what was not tested."""


def main_table(layout: TableLayout, cells: Sequence[Cell], block: Block) -> "DataFrame":
    """Return the table of one block as text: rows x columns, the paper's rows below.

    A block without a record has no lines, and columns without one in it are left out,
    unless there is a paper's table. There is a column `sees` if the layout says
    of any row what its arm sees.
    """
    own = [cell for cell in cells if cell.block == block]
    shown = {cell.column.name for cell in own}
    # Beside a paper's table, columns that are only there stay.
    columns = [c for c in layout.columns if c.name in shown or layout.paper_table]
    lines = []
    for row in layout.rows:
        in_row = {cell.column.name: cell for cell in own if cell.row == row}
        if in_row and row.budget is None:
            texts = [_main_text(in_row.get(column.name)) for column in columns]
            queries = _queries(list(in_row.values()))
            lines.append([row.label, row.sees, *texts, queries])
    if lines:
        lines += _paper_lines(layout, block)
    headings = [column.heading for column in columns]
    table = text_table(lines, ["method", "sees", *headings, "queries"])
    if layout.of_learners:
        table = table.drop(columns="queries")
    return table if any(layout.sees.values()) else table.drop(columns="sees")


def paper_table(layout: TableLayout, cells: Sequence[Cell]) -> "DataFrame":
    """Return every cell the paper prints too: ours, the paper's, difference, verdict.

    Rows of the paper that no row of the layout reproduces follow, without our number.
    """
    lines = []
    for block in layout.blocks:
        own = [cell for cell in cells if cell.block == block]
        for cell in own:
            if cell.paper is not None and cell.paper_difference is not None:
                lines.append(_beside(cell, cell.paper, cell.paper_difference))
        lines += _not_built(layout, block) if own else []
    names = ["block", "column", "method", "ours", "paper", "difference", "verdict"]
    return text_table(lines, names)


def rival_table(layout: TableLayout, cells: Sequence[Cell]) -> "DataFrame":
    """Return how every tested row compares with its rival row, in costs."""
    labels = {row.name: row.label for row in layout.rows}
    lines = []
    for cell in cells:
        versus = cell.against_rival
        if versus is not None:
            rival = labels[cell.row.rival_row or layout.rival_row or ""]
            place = [cell.block.label, cell.column.heading, cell.row.label, rival]
            ends = [cell.column.signed(end) for end in versus.interval or ()]
            interval = f"{ends[0]} to {ends[1]}" if ends else NOTHING
            gain = cell.column.signed(versus.gain)
            p_value = _p_text(versus.p_holm)
            verdict = worded(cell.rival_verdict, cell.column)
            lines.append([*place, gain, interval, p_value, verdict])
    numbers = ["difference", "95 % interval", "p", "verdict"]
    return text_table(lines, ["block", "column", "method", "against", *numbers])


def long_table(cells: Sequence[Cell]) -> "DataFrame":
    """Return one line of numbers per cell, in native units; differences in costs."""
    import pandas

    return pandas.DataFrame([_long_line(cell) for cell in cells])


def gap_table(layout: TableLayout, cells: Sequence[Cell], block: Block) -> "DataFrame":
    """Return the share of the threshold shift's gain each row reaches, in percent.

    Rows with a value function also show its Spearman correlations with the metric, and
    these alone in a column without a threshold shift.
    """
    ends = (layout.loss_only_row, layout.threshold_shift_row)
    own = [cell for cell in cells if cell.block == block]
    shifted = {c.column for c in own if c.row.name == layout.threshold_shift_row}
    lines = []
    for row in layout.rows:
        in_row = {cell.column.name: cell for cell in own if cell.row == row}
        closed = any(cell.gap_closed is not None for cell in in_row.values())
        healthy = any(_rho_text(cell) for cell in in_row.values())
        if row.name not in ends and (closed or healthy):
            found = [in_row.get(column.name) for column in layout.columns]
            lines.append([row.label, *(_gap_text(cell, shifted) for cell in found)])
    return text_table(lines, ["method", *(column.heading for column in layout.columns)])


def number_text(cell: Cell) -> str:
    """Return `mean±std (n)` in the unit of the column, or what went wrong instead."""
    if cell.mean is None:
        return cell.trouble
    return f"{cell.column.summary(cell.all_values)} ({len(cell.all_values)})"


def worded(verdict: str, column: Column) -> str:
    """Return a verdict as printed, with the margin of what is equal."""
    if verdict != EQUAL:
        return verdict
    return f"equal within {column.format(column.equal_within)}"


def _compared_text(cell: Cell) -> str:
    """Return what is compared with the paper, which is not always the metric."""
    label, column = cell.column.compare_metric, cell.column
    if not label or cell.compared is None:
        return number_text(cell)
    short = label.removeprefix(f"{column.metric.name}-")
    return f"{column.format(cell.compared)} ({short})"


def _main_text(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    parts = [number_text(cell)]
    if cell.mean is not None:
        parts += [SIGNS.get(cell.verdict, ""), cell.trouble]
    return " ".join(part for part in parts if part)


def _paper_lines(layout: TableLayout, block: Block) -> list[list[str]]:
    """Return one line per row of the paper, `*` where it is not comparable."""
    table = layout.paper_table or ""
    lines = []
    for row in paper_rows(table):
        texts = [_paper_text(table, row, column, block) for column in layout.columns]
        if any(text != NOTHING for text in texts):
            lines.append([f"paper: {ROW_LABELS[row]}", "", *texts, ""])
    return lines


def _paper_text(table: str, row: str, column: Column, block: Block) -> str:
    printed = find_paper_value(table, row, column.paper_column or "")
    if printed is None:
        return NOTHING
    apart = column.not_comparable or block.not_comparable
    return f"{column.spread(printed.value, printed.std)}{'*' if apart else ''}"


def _beside(cell: Cell, paper: PaperValue, difference: float) -> list[str]:
    """Return the line of a cell that the paper has too."""
    column = cell.column
    return [
        cell.block.label,
        column.heading,
        cell.row.label,
        _compared_text(cell),
        column.spread(paper.value, paper.std),
        column.signed(difference),
        cell.paper_verdict,
    ]


def _not_built(layout: TableLayout, block: Block) -> list[list[str]]:
    """Return a line for each number of the paper whose method the layout lacks."""
    table = layout.paper_table or ""
    built = {
        layout.paper_row(row, each) for row in layout.rows for each in layout.blocks
    }
    lines = []
    for row in paper_rows(table):
        for column in layout.columns:
            printed = find_paper_value(table, row, column.paper_column or "")
            if row not in built and printed is not None:
                place = [block.label, column.heading, ROW_LABELS[row]]
                text = column.spread(printed.value, printed.std)
                lines.append([*place, "not built yet", text, NOTHING, NOTHING])
    return lines


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return NOTHING
    return "<.001" if p_value < 0.001 else f"{p_value:.3f}".removeprefix("0")


def _gap_text(cell: Cell | None, shifted: set[Column]) -> str:
    if cell is None:
        return NOTHING
    closed, rho = cell.gap_closed, _rho_text(cell)
    if cell.column not in shifted:
        return rho or NOTHING
    share = "in noise" if closed is None else f"{100 * closed:z.0f} %"
    return f"{share} ({rho})" if rho else share


def _rho_text(cell: Cell) -> str:
    """Return how well a value function ranks each kind of trajectory, if there is one.

    A kind whose costs are all alike has no correlation.
    """
    found = [cell.note(name) for name in ("spearman_loss", "spearman_guided")]
    if found == [None, None]:
        return ""
    return "rho " + " / ".join(
        NOTHING if rho is None else f"{rho:.2f}" for rho in found
    )


def _long_line(cell: Cell) -> dict[str, object]:
    versus = cell.against_base
    interval = (versus and versus.interval) or (None, None)
    return {
        "block": cell.block.name,
        "row": cell.row.name,
        "column": cell.column.name,
        "metric": cell.column.metric.label,
        "unit": cell.column.unit,
        "n": len(cell.all_values),
        "n_of": cell.unit,
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
        "p_equal_holm": versus and versus.p_equal_holm,
        "verdict": worded(cell.verdict, cell.column),
        "paper": None if cell.paper is None else cell.paper.value,
        "difference": cell.paper_difference,
        "paper_verdict": cell.paper_verdict,
        "queries": _count(cell, lambda record: record.queries),
        "shared_queries": _count(cell, lambda record: record.shared_queries),
        "gradient_steps": _count(cell, lambda record: record.gradient_steps),
        "gap_closed": cell.gap_closed,
        "spearman_loss": cell.note("spearman_loss"),
        "spearman_guided": cell.note("spearman_guided"),
    }


def _observe_mean(cell: Cell) -> float | None:
    return stats.mean(Reading(cell.column).all_finals(cell.finished, "observe"))


def _count(cell: Cell, read: Callable[[RunRecord], int]) -> float | None:
    return stats.mean([read(record) for record in cell.finished])


def _queries(cells: Sequence[Cell]) -> str:
    return count_range([record.queries for cell in cells for record in cell.records])

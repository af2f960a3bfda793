"""Records to the committed files of an experiment: text, LaTeX, CSV and figures."""

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import remarks, tables
from benchmarks.report.cells import Cell, judge
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.panels import plain_style, to_png
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import to_csv, to_latex, to_markdown
from benchmarks.report.sections.answers import answers
from benchmarks.report.sections.bounds import within_bounds
from benchmarks.report.sections.claims import what_was_claimed
from benchmarks.report.sections.gain_by_size import gain_by_size
from benchmarks.report.sections.learning_cost import learning_cost
from benchmarks.report.sections.noted import (
    identified,
    proposals,
    rank_agreement,
    training_cost,
)
from benchmarks.report.sections.order import order_of_rows
from benchmarks.report.sections.over_columns import over_columns
from benchmarks.report.sections.over_tasks import new_tasks
from benchmarks.report.sections.queries import (
    EQUAL_QUERIES,
    equal_queries,
    queries_to_reach,
)
from benchmarks.report.sections.side_by_side import side_by_side
from benchmarks.report.sections.time_page import time_page
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import sort_records, write_jsonl
from metricopt.errors import DataError
from metricopt.files import read_text, write_atomically

RIVAL = "## Against another method"
GAP, VALUE_FUNCTIONS = "## Gap closed", "## Value functions"
FIGURES, NOTES = "## Figures", "## Notes"
"""Headings of a page; the last three follow what a terminal shows."""


def write_report(
    layout: TableLayout,
    records: Sequence[RunRecord],
    folder: str | Path,
    *,
    reference: Sequence[RunRecord] | None = None,
) -> list[Path]:
    """Write every table and figure of an experiment, and the records they come from.

    Writes `records.jsonl`, `table.md`, `table.csv`, `table.tex`, `time.md` and one PNG
    per figure, each atomically; figures of an earlier report that these records no
    longer give are removed. Wall time is in `time.md`, the records, and the sections of
    a page that compare it.

    Args:
        layout: the experiment.
        records: all its records of one tier, in any order.
        folder: such as `results/table3/local`; made if missing.
        reference: the committed records of that tier, which may be none, to show the
            results beside; None for a report without that section.

    Returns:
        The files written, sorted.

    Raises:
        DataError: if the records may not share one table.
    """
    folder = Path(folder)
    contents = build(layout, records, reference=reference)
    for name, content in contents.items():
        write_atomically(folder / name, content)
    for stale in set(folder.glob("*.png")) - {folder / name for name in contents}:
        os.remove(stale)
    # Last: whoever finds these records there may trust that the rest is of them.
    write_jsonl(folder / "records.jsonl", records)
    return sorted([folder / "records.jsonl", *(folder / name for name in contents)])


def build(
    layout: TableLayout,
    records: Sequence[RunRecord],
    *,
    reference: Sequence[RunRecord] | None = None,
) -> dict[str, bytes]:
    """Return the content of every file of a report but the records, by name.

    Args:
        layout: the experiment.
        records: all its records of one tier, in any order.
        reference: see `write_report`.

    Raises:
        DataError: if the records may not share one table.
    """
    records, layout = sort_records(records), layout.fitted(records)
    cells = judge(layout, records)
    with plain_style():
        drawn = draw_all(layout, records)
        figures = {f"{name}.png": to_png(drawn[name]) for name in drawn}
    parts = _head_parts(layout, records, cells) + sections(layout, records, cells)
    if reference is not None:
        parts += side_by_side(layout, records, reference)
    parts += _gap_parts(layout, cells) + equal_queries(layout, records)
    parts += queries_to_reach(layout, records)
    if figures:
        parts += [FIGURES, "\n".join(f"![{name}]({name})" for name in figures)]
    listed = "\n".join(f"- {note}" for note in remarks.notes(layout, cells))
    texts = {
        "table.md": "\n\n".join([*parts, NOTES, listed]) + "\n",
        "table.csv": to_csv(tables.long_table(cells)),
        "table.tex": _latex(layout, records, cells),
        "time.md": time_page(layout, records),
    }
    contents = {name: text.encode() for name, text in texts.items()}
    return contents | figures


def sections(
    layout: TableLayout, records: Sequence[RunRecord], cells: Sequence[Cell]
) -> list[str]:
    """Return the sections on what a table alone does not show, as Markdown.

    Args:
        layout: the experiment, fitted to the records.
        records: all its records of one tier, sorted.
        cells: the judged cells of these records.
    """
    parts = order_of_rows(layout, cells) + new_tasks(layout, cells)
    parts += over_columns(layout, records)
    parts += gain_by_size(layout, cells) + what_was_claimed(layout, cells)
    parts += within_bounds(layout, cells) + identified(cells)
    parts += training_cost(cells) + rank_agreement(cells)
    parts += learning_cost(layout, cells) + proposals(layout, records)
    return parts + answers(layout, records)


def terminal_page(folder: str | Path) -> str:
    """Return what a terminal shows of a report: its tables, and where the rest is.

    Args:
        folder: of a written report.

    Raises:
        DataError: if its page is damaged.
    """
    path = Path(folder) / "table.md"
    try:
        page = read_text(path)
    except DataError as error:
        raise DataError(f"{error}; `./reproduce.sh report` writes it again") from error
    for heading in (EQUAL_QUERIES, FIGURES, NOTES):
        page = page.partition(f"\n{heading}\n")[0]
    return f"{page.rstrip()}\n\nThe whole report, with figures and notes: {path}"


def _head_parts(
    layout: TableLayout, records: Sequence[RunRecord], cells: Sequence[Cell]
) -> list[str]:
    """Return title, facts, the main tables and what they are held against."""
    parts = [f"# {layout.title}", layout.caption, remarks.facts(layout, records)]
    for block in layout.blocks:
        table = tables.main_table(layout, cells, block)
        if len(table):
            own = [cell for cell in cells if cell.block == block]
            above = filter(None, [remarks.nothing_shown(own)])
            parts += [f"## {block.label}", *above, to_markdown(table)]
    parts.append(remarks.legend(layout))
    rivals = tables.rival_table(layout, cells)
    if len(rivals):
        parts += [RIVAL, remarks.rival_legend(layout), to_markdown(rivals)]
    beside = tables.paper_table(layout, cells)
    if len(beside):
        parts += [f"## Beside {layout.paper_table}", to_markdown(beside)]
    return parts


def _gap_parts(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    parts = []
    for block in layout.blocks:
        table = tables.gap_table(layout, cells, block)
        if len(table):
            parts += [f"### {block.label}", to_markdown(table)]
    heading = VALUE_FUNCTIONS if layout.threshold_shift_row is None else GAP
    return [heading, remarks.gap_legend(layout), *parts] if parts else []


def _latex(
    layout: TableLayout, records: Sequence[RunRecord], cells: Sequence[Cell]
) -> str:
    lines = remarks.facts(layout, records).splitlines()
    facts = "; ".join(line.removeprefix("- ").rstrip(".") for line in lines)
    parts = []
    for block in layout.blocks:
        table = tables.main_table(layout, cells, block)
        if len(table):
            caption = f"{layout.title} ({block.label}). {layout.caption} {facts}."
            parts.append(to_latex(table, caption=caption))
    return "\n".join(parts)

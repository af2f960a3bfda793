"""What the page of a table shows: blocks of rows, each cell with the paper's number."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from benchmarks.report.cells import BETTER, EQUAL, NOT_SHOWN, WORSE, Cell
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.report.paper_values import ROW_LABELS, find_paper_value, paper_rows
from benchmarks.report.render import count_range
from benchmarks.report.tables import SIGNS, worded
from benchmarks.rows.contract import Row
from benchmarks.website.reports import Report, place_of

KINDS = {BETTER: "better", WORSE: "worse", EQUAL: "equal", NOT_SHOWN: "unclear"}
"""Classes in the style sheet, by verdict."""


@dataclass(frozen=True)
class Entry:
    """One cell as printed.

    Attributes:
        link: where the page tells of its runs, after the `#`.
        mean, std: the value, and its deviation; what went wrong if there is none.
        sign: of the verdict; empty for no test.
        verdict: in words.
        kind: class of the verdict in the style sheet.
        paper: the paper's number; empty if there is none.
        own: the number of a user; empty if there is none.
        value: to sort by, lower is better; None without one.
    """

    link: str
    mean: str
    std: str = ""
    sign: str = ""
    verdict: str = ""
    kind: str = ""
    paper: str = ""
    own: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Line:
    """One row as printed; `queries` are the most that a run of it made."""

    label: str
    sees: str
    family: str
    queries: int
    spent: str
    name: str
    entries: Sequence[Entry | None]
    note: str = ""


@dataclass(frozen=True)
class Part:
    """One block as printed, with the paper's rows that no row here reproduces."""

    block: Block
    columns: Sequence[Column]
    lines: Sequence[Line]
    paper_lines: Sequence[tuple[str, Sequence[str]]]


def parts_of(report: Report) -> list[Part]:
    """Return the blocks that have cells, with the columns that have any."""
    return [part for block in report.layout.blocks if (part := _part(report, block))]


def verdicts(cells: Sequence[Cell]) -> list[tuple[str, str, int]]:
    """Return words, classes and counts of the verdicts of some cells."""
    counts = Counter(cell.verdict for cell in cells)
    return [(word, kind, counts[word]) for word, kind in KINDS.items() if counts[word]]


def fragment(block: str, row: str, column: str) -> str:
    """Return what comes after the `#` in the address of a cell."""
    return quote(f"{block}/{row}/{column}", safe="/@()=,+")


def _part(report: Report, block: Block) -> Part | None:
    layout = report.layout
    own = [c for c in report.cells_shown if c.block == block]
    if not own:
        return None
    filled = {cell.column.name for cell in own}
    columns = [c for c in layout.columns if c.name in filled or layout.paper_table]
    rows = [row for row in layout.rows if row.budget is None]
    found = [_line(report, row, columns, own) for row in rows]
    lines = [line for line in found if line]
    return Part(block, columns, lines, list(_unbuilt(report, block, columns)))


def _line(
    report: Report, row: Row, columns: Sequence[Column], cells: Sequence[Cell]
) -> Line | None:
    own = {cell.column.name: cell for cell in cells if cell.row == row}
    if not own:
        return None
    spent = [record.queries for cell in own.values() for record in cell.records]
    return Line(
        row.label,
        row.sees,
        row.family,
        max(spent),
        count_range(spent),
        row.name,
        [_entry(report, own.get(column.name)) for column in columns],
        row.note,
    )


def _entry(report: Report, cell: Cell | None) -> Entry | None:
    if cell is None:
        return None
    link, column = fragment(*place_of(cell)), cell.column
    paper = "" if cell.paper is None else column.format(cell.paper.value)
    beside = report.own_cells.get(place_of(cell))
    own = _number(beside) if beside and report.records else ""
    if cell.mean is None:
        return Entry(link, cell.trouble, paper=paper, own=own)
    return Entry(
        link,
        column.format(cell.mean),
        "" if cell.std is None else column.format(cell.std),
        SIGNS.get(cell.verdict, ""),
        worded(cell.verdict, column),
        KINDS.get(cell.verdict, ""),
        paper + ("*" if paper and _apart(column, cell.block) else ""),
        own,
        column.sign * cell.mean,
    )


def _number(cell: Cell) -> str:
    return cell.trouble if cell.mean is None else cell.column.format(cell.mean)


def _apart(column: Column, block: Block) -> bool:
    return bool(column.not_comparable or block.not_comparable)


def _unbuilt(
    report: Report, block: Block, columns: Sequence[Column]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the paper that no row here reproduces, with their numbers."""
    layout = report.layout
    table = layout.paper_table or ""
    # Labels of the rows with records; other rows of the layout reproduce nothing here.
    built = {
        layout.paper_row(cell.row, each)
        for cell in report.cells
        for each in layout.blocks
    }
    for row in paper_rows(table):
        texts = []
        for column in columns:
            printed = find_paper_value(table, row, column.paper_column or "")
            mark = "*" if _apart(column, block) else ""
            texts.append(f"{column.format(printed.value)}{mark}" if printed else "")
        if row not in built and any(texts):
            yield ROW_LABELS[row], texts

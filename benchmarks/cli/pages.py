"""README.md and the pages of `docs`: their tables and numbers are those of records.

A page holds a table between `<!-- NAME:begin -->` and `<!-- NAME:end -->`, and a number
between `<!-- value: WHAT -->` and `<!-- end -->`, where WHAT is

    EXPERIMENT BLOCK COLUMN ROW            the mean of a row on test, at tier local
    EXPERIMENT BLOCK COLUMN ARM@QUERIES    the same at a budget of metric queries

`python -m benchmarks.cli.pages` writes tables and numbers anew, and lists all other
numbers and all of `results` by content; `page_problems` says whether tables and numbers
are current, and whether links lead somewhere.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cli.manifest import write_manifest
from benchmarks.cli.page_tables import TABLES, committed, layout_of
from benchmarks.problems.pretrained.weights import released_problems
from benchmarks.report import stats
from benchmarks.report.columns import find_column
from benchmarks.report.curves import at_budget, of_row
from benchmarks.runs.paths import ROOT
from benchmarks.runs.store import read_jsonl
from metricopt.errors import DataError, MetricOptError
from metricopt.files import read_text, write_atomically

TABLE = re.compile(r"<!-- ([\w-]+):begin -->")
VALUE = re.compile(r"(<!-- value: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)")


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of a project: README.md and all of `docs`."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def marks(name: str) -> tuple[str, str]:
    """Return what stands before and after a table."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def rewritten(page: str, name: str, table: str) -> str:
    """Return the text of a page with a table between its two marks.

    Raises:
        DataError: if it does not have each mark once, in order.
    """
    begin_mark, end_mark = marks(name)
    before, begin, rest = page.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not (begin and end) or begin_mark in rest or end_mark in before + after:
        raise DataError(f"the page needs {begin_mark} and then {end_mark}, each once")
    return f"{before}{begin_mark}\n\n{table}\n\n{end_mark}{after}"


def value(results: Path, what: str) -> str:
    """Return a number of the committed records as a column prints it.

    Args:
        results: folder of the committed reports.
        what: see above.

    Raises:
        DataError: if it is not of that form, or there is no such number.
    """
    parts = what.split()
    if len(parts) != 4:
        raise DataError(
            f"a value needs an experiment, a block, a column and a row, got {what!r}"
        )
    experiment, block, name, entry = parts
    layout = layout_of(experiment)
    column = find_column(layout.columns, name)
    records = [
        record
        for record in committed(results, experiment)
        if (record.spec.block, record.spec.column) == (block, column.source)
    ]
    reading = layout.fitted(records).reading(column)
    row, _, queries = entry.partition("@")
    if queries:
        found = at_budget(records, row, int(queries), reading)
    else:
        runs = [run for run in of_row(records, row) if reading.finished(run)]
        found = reading.all_finals(runs)
    mean = stats.mean(found)
    if mean is None:
        raise DataError(f"there is no finished run of {what!r}")
    return column.format(mean)


def current(page: str, results: Path) -> str:
    """Return the text of a page with the tables and numbers of the records.

    Raises:
        DataError: if a mark or a number is wrong, or records are missing.
    """
    for name in dict.fromkeys(TABLE.findall(page)):
        if name not in TABLES:
            raise DataError(f"unknown table {name!r}; known: {', '.join(TABLES)}")
        page = rewritten(page, name, TABLES[name](results))
    return VALUE.sub(lambda m: f"{m[1]}{value(results, m[2])}{m[4]}", page)


def prose(root: Path = ROOT) -> dict[str, str]:
    """Return the pages of a project by name, without what is made of records.

    A number of a record is replaced by its mark, without spaces.
    """
    texts = {}
    for path in pages(root):
        try:
            text = _text(path)
        except DataError:  # of which `page_problems` tells
            continue
        for name in dict.fromkeys(TABLE.findall(text)):
            before, _, rest = text.partition(marks(name)[0])
            text = before + rest.partition(marks(name)[1])[2]
        texts[path.relative_to(root).as_posix()] = VALUE.sub(_stand_in, text)
    return texts


def page_problems(root: Path = ROOT) -> list[str]:
    """Return what is wrong with the pages of a project, one sentence each."""
    problems = []
    for path in pages(root):
        page = path.relative_to(root)
        try:
            text = _text(path)
        except DataError as error:
            problems.append(str(error))
            continue
        problems += [
            f"{page} links to {target}, which does not exist"
            for target in dict.fromkeys(LINK.findall(text))
            if not (path.parent / target).exists()
        ]
        try:
            is_current = current(text, root / "results") == text
        except MetricOptError as error:
            problems.append(f"{page}: {error}")
            continue
        if not is_current:
            problems.append(
                f"the tables or numbers of {page} are not those of the records; "
                "run `python -m benchmarks.cli.pages`"
            )
    return problems


def main() -> int:
    """Write the tables and numbers into all pages, list results; return the exit code.

    Damaged records and networks are refused, so that they never become the listed ones.
    """
    results = ROOT / "results"
    for problem in _unfit(results):
        print(f"error: {problem}", file=sys.stderr)
        return 2
    for path in pages(ROOT):
        try:
            text = current(_text(path), results)
        except MetricOptError as error:
            print(f"error: {path.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 2
        write_atomically(path, text.encode())
    write_manifest(results, prose(ROOT))
    return 0


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; restore it with git") from None


def _stand_in(found: re.Match[str]) -> str:
    return f"<{'/'.join(found[2].split())}>"


def _unfit(results: Path) -> Iterator[str]:
    """Yield what is wrong with the records and networks that are to be listed."""
    for path in sorted(results.glob("*/*/records.jsonl")):
        try:
            read_jsonl(path)
        except DataError as error:
            yield str(error)
    yield from released_problems(results / "weights")


if __name__ == "__main__":
    sys.exit(main())

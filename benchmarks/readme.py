"""The tables of README.md, from the committed records.

`python -m benchmarks.readme` writes them anew; `readme_problems` says whether they are
current.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import readme_pays, readme_table
from benchmarks.paths import write_atomically
from metricopt.errors import DataError, MetricOptError

ROOT = Path(__file__).parent.parent
TABLES: dict[str, Callable[[Path], str]] = {
    "first-table": readme_table.committed,
    "when-it-pays": readme_pays.committed,
}
"""Name of every table in README.md, and what makes it of the folder of reports."""

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)")


def marks(name: str) -> tuple[str, str]:
    """Return what stands before and after a table."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def rewritten(readme: str, name: str, table: str) -> str:
    """Return the text of a README with a table between its two marks.

    Raises:
        DataError: if it does not have each mark once, in order.
    """
    begin_mark, end_mark = marks(name)
    before, begin, rest = readme.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not (begin and end) or begin_mark in rest or end_mark in before + after:
        raise DataError(f"README.md needs {begin_mark} and then {end_mark}, each once")
    return f"{before}{begin_mark}\n\n{table}\n\n{end_mark}{after}"


def readme_problems(
    results: Path = ROOT / "results", readme: Path = ROOT / "README.md"
) -> list[str]:
    """Return what is wrong with README.md, one sentence each, empty if nothing.

    Its tables must be those the committed records give, and every relative link must
    lead somewhere.

    Args:
        results: folder of the committed reports.
        readme: the file, which links relative to its own folder.
    """
    text = readme.read_text(encoding="utf-8")
    problems = [
        f"{readme.name} links to {target}, which does not exist"
        for target in dict.fromkeys(LINK.findall(text))
        if not (readme.parent / target).exists()
    ]
    for name, make in TABLES.items():
        try:
            current = rewritten(text, name, make(results)) == text
        except MetricOptError as error:
            problems.append(str(error))
            continue
        if not current:
            problems.append(
                f"the table {name} of {readme.name} is not that of the records; "
                "run `python -m benchmarks.readme`"
            )
    return problems


def main() -> int:
    """Write the tables into README.md and return the exit code."""
    readme = ROOT / "README.md"
    try:
        text = readme.read_text(encoding="utf-8")
        for name, make in TABLES.items():
            text = rewritten(text, name, make(ROOT / "results"))
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_atomically(readme, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

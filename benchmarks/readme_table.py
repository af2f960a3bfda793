"""The first table of README.md: methods at equal metric queries, from the records.

`python -m benchmarks.readme_table` writes it anew; `readme_problems` says whether it is
current.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import stats
from benchmarks.cells import replicate_mean
from benchmarks.curves import at_budget, of_arm
from benchmarks.experiment import find_experiment
from benchmarks.layout import Column, TableLayout, data_variants
from benchmarks.paths import write_atomically
from benchmarks.records import RunRecord, read_jsonl
from benchmarks.render import to_markdown
from metricopt.errors import DataError, MetricOptError

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- first-table:begin -->", "<!-- first-table:end -->"
EXPERIMENT, TIER, BLOCK = "table3", "local", "balanced"
COLUMNS = ("a9a/mcr", "a9a/f1")
SEARCHES = ("metricopt", "random-search", "cma-es", "guided-cma")
REFERENCES = ("cross-entropy", "loss-only", "loss-only-dense", "threshold-shift")
NOTHING = "·"
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)")


def first_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return the table as Markdown, and below it what else there is to compare with.

    Args:
        layout: that of Table 3.
        records: all its records of one tier.

    Raises:
        DataError: if there is no finished run of a search in one of its columns.
    """
    from pandas import DataFrame

    lines, remarks = [], []
    for column in layout.columns:
        if column.name in COLUMNS:
            place = (BLOCK, column.name)
            own = [r for r in records if (r.spec.block, r.spec.column) == place]
            lines += _lines(layout, own, column)
            remarks.append(_remark(layout, own, column))
    names = ["metric", "after", *(f"{q:,} queries" for q in layout.query_budgets)]
    table = to_markdown(DataFrame(lines, columns=names, dtype="object"))
    return "\n".join([table, "", *remarks])


def rewritten(readme: str, table: str) -> str:
    """Return the text of a README with `table` between its two marks.

    Raises:
        DataError: if it does not have each mark once, in order.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise DataError(f"README.md needs {BEGIN} and then {END}, each once")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def readme_problems(
    results: Path = ROOT / "results", readme: Path = ROOT / "README.md"
) -> list[str]:
    """Return what is wrong with README.md, one sentence each, empty if nothing.

    Its table must be the one the committed records give, and every relative link must
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
    try:
        current = rewritten(text, _committed_table(results)) == text
    except MetricOptError as error:
        return [*problems, str(error)]
    if not current:
        problems.append(
            f"the first table of {readme.name} is not that of the records; "
            "run `python -m benchmarks.readme_table`"
        )
    return problems


def main() -> int:
    """Write the table into README.md and return the exit code."""
    readme = ROOT / "README.md"
    try:
        table = _committed_table(ROOT / "results")
        text = rewritten(readme.read_text(encoding="utf-8"), table)
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_atomically(readme, text.encode())
    return 0


def _committed_table(results: Path) -> str:
    records = read_jsonl(results / EXPERIMENT / TIER / "records.jsonl")
    return first_table(find_experiment(EXPERIMENT).layout(TIER), records)


def _lines(
    layout: TableLayout, records: Sequence[RunRecord], column: Column
) -> list[list[str]]:
    lines = []
    for arm in SEARCHES:
        cells = (at_budget(records, arm, "test", q) for q in layout.query_budgets)
        texts = [_text(values, column) for values in cells]
        lines.append([column.heading, layout.arms[arm], *texts])
    if all(text == NOTHING for line in lines for text in line[2:]):
        raise DataError(f"there is no finished run of a search in {column.name!r} yet")
    return lines


def _remark(layout: TableLayout, records: Sequence[RunRecord], column: Column) -> str:
    """Name the data, and say what the arms reach that the table has no place for."""
    parts = []
    for arm in REFERENCES:
        found = (replicate_mean(record.test) for record in of_arm(records, arm))
        values = [value for value in found if value is not None]
        parts.append(f"{layout.arms[arm]} {_text(values, column)}")
    replicates = len({record.spec.replicate for record in records})
    variants = ", ".join(sorted(data_variants(records, column.name)))
    return (
        f"- {column.heading} ({variants}, {replicates} replicates), to compare with: "
        f"{'; '.join(parts)}."
    )


def _text(values: Sequence[float], column: Column) -> str:
    centre, spread = stats.mean(values), stats.sample_std(values)
    if centre is None:
        return NOTHING
    text = column.format(centre)
    return text if spread is None else f"{text}±{column.format(spread)}"


if __name__ == "__main__":
    sys.exit(main())

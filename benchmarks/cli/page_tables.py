"""The tables of README.md and the pages of `docs`, from the committed records."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean

from benchmarks.report.cells import judge
from benchmarks.report.columns import NOTHING, Column, Reading, find_column
from benchmarks.report.curves import at_budget, of_entry, of_row
from benchmarks.report.fair_summary import (
    HEADINGS,
    Match,
    Place,
    Standing,
    fraction,
    matches,
    places,
    standings,
)
from benchmarks.report.layout import TableLayout, data_variants
from benchmarks.report.render import count_range, text_table, to_markdown
from benchmarks.report.sections.bounds import within_bounds
from benchmarks.report.sections.claims import what_was_claimed
from benchmarks.report.sections.over_columns import standing_lines
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import find_experiment
from metricopt.errors import DataError

TIER = "local"


@cache
def committed(results: Path, experiment: str) -> tuple[RunRecord, ...]:
    """Return the committed records of an experiment, read once for all pages.

    Raises:
        DataError: if there are none.
    """
    return tuple(read_jsonl(results / experiment / TIER / "records.jsonl"))


def layout_of(experiment: str) -> TableLayout:
    """Return the layout of an experiment at the tier of the pages."""
    return find_experiment(experiment).layout(TIER)


GROUPS = {
    "Table 3": {
        ("table3", "balanced"): "a9a/mcr a9a/jaccard a9a/f1 a9a/g-mean "
        "covtype-rare/f1 covtype-rare/g-mean"
    },
    "images": {
        ("mismatch", "natural"): "cifar10/worst-class-error "
        "cifar10/vehicle-animal-cost tail/f-macro tail/g-mean noise/mcr",
        ("table1", "natural"): "cifar10/mcr",
    },
    "AUCPR": {
        ("table2", "natural"): "small/aucpr small/aucpr-macro-logits resnet32/aucpr "
        "resnet32/aucpr-macro-logits"
    },
}
"""Experiment, block and columns of every group: those in which all rivals have runs."""
TOGETHER = "all"
BUDGETS = (15, 20, 50, 150)
FIRST_BUDGET = 20
"""Budget of the table shown first. Searches are recorded after 10 and 20 queries, so 15
would hold MetricOpt on outputs, which spends 15, against searches of 10."""
SHARP = (
    "metricopt-outputs",
    "portfolio",
    "weighted-loss",
    "adaptive-surrogates",
    "cma-offsets",
    "prior-correction",
)
"""Arms of the short line: ours and its sharpest rivals."""
SHOWN = (*SHARP, "trust-region-bo", "cma-es")
"""Arms of the table shown first; the whole tables have all."""


def summary_table(results: Path) -> str:
    """Return the regret in every group, and shares and harm over all, as Markdown."""
    groups = _matches(results, FIRST_BUDGET)
    found = {name: _by_entry(group) for name, group in groups.items()}
    lines = []
    for entry in sorted(SHOWN, key=lambda entry: _order(found, entry)):
        own = [group.get(entry) for group in found.values()]
        regrets = [fraction(each.regret) if each else NOTHING for each in own]
        rest = own[-1].texts[4:] if own[-1] else [NOTHING] * 4
        row, queries = next((each.row, each.queries) for each in own if each)
        lines.append([row.label, row.sees, str(queries), *regrets, *rest])
    heads = (f"{name} ({_size(group)})" for name, group in groups.items())
    return to_markdown(text_table(lines, [*HEADINGS[:3], *heads, *HEADINGS[4:]]))


def group_table(name: str, results: Path) -> str:
    """Return the standings of one group, or of all, at every budget as Markdown."""
    lines = []
    for budget in BUDGETS:
        for standing in standings(_matches(results, budget)[name]):
            lines.append([str(budget), *standing.texts])
    return to_markdown(text_table(lines, ["at most", *HEADINGS]))


def short_line(results: Path) -> str:
    """Return the regret of the strongest rows over all columns."""
    every = _matches(results, FIRST_BUDGET)[TOGETHER]
    own = [each for each in standings(every) if each.row.name in SHARP]
    texts = (f"{each.row.label} {fraction(each.regret)}" for each in own)
    return f"Over {len(every)} columns: {', '.join(texts)}."


@cache
def _places(results: Path) -> dict[str, list[Place]]:
    """Return the columns of every group."""
    return {
        name: [
            place
            for (experiment, block), columns in parts.items()
            for place in places(
                layout_of(experiment),
                committed(results, experiment),
                block,
                columns.split(),
            )
        ]
        for name, parts in GROUPS.items()
    }


@cache
def _matches(results: Path, budget: int) -> dict[str, list[Match]]:
    """Return the columns of every group, and of all together, within a budget."""
    found = {name: matches(own, budget) for name, own in _places(results).items()}
    return {**found, TOGETHER: [match for group in found.values() for match in group]}


def _by_entry(group: list[Match]) -> dict[str, Standing]:
    return {standing.row.name: standing for standing in standings(group)}


def _order(found: dict[str, dict[str, Standing]], entry: str) -> float:
    """Return the mean regret of a row over the groups that it is in."""
    own = (found[name].get(entry) for name in GROUPS)
    return fmean(standing.regret for standing in own if standing)


def _size(group: list[Match]) -> str:
    room = sum(match.has_room for match in group)
    return f"{len(group)}, room in {room}"


FIRST_EXPERIMENT, FIRST_BLOCK, FIRST_COLUMN = "table3", "balanced", "a9a/mcr"
SEARCHES = (
    "metricopt-outputs",
    "cma-offsets",
    "adaptive-surrogates",
    "portfolio",
    "cma-es",
    "metricopt",
)
REFERENCES = (
    "cross-entropy",
    "loss-only",
    "prior-correction",
    "threshold-grid",
    "threshold-shift",
)

PAYS_COLUMNS = (
    ("table1", "cifar10/mcr"),
    ("table2", "resnet32/aucpr"),
    ("table2", "small/aucpr"),
    ("table2", "resnet32/aucpr-macro-logits"),
    ("table2", "small/aucpr-macro-logits"),
    ("mismatch", "noise/mcr"),
    ("mismatch", "cifar10/vehicle-animal-cost"),
    ("mismatch", "cifar10/worst-class-error"),
    ("mismatch", "tail/f-macro"),
    ("mismatch", "tail/g-mean"),
)
"""Experiment and column of every line of the second table."""
PAYS_ROWS = {
    "cross-entropy": "untouched",
    "metricopt-outputs": "MetricOpt on outputs",
    "loss-only-dense": "dense evaluation",
    "metricopt": "MetricOpt",
    "cma-es": "CMA-ES",
    "class-offsets": "class offsets",
    "oracle-test": "oracle: CMA-ES on test",
}
"""Row of every column of the second table after the first, and its heading."""

UNSEEN = (("metricopt-outputs", 15), ("cma-es", 15), ("cma-es", 50), ("cma-es", 150))
"""Arm and metric queries of every column of black boxes after the untouched one."""


def first_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return methods at equal metric queries as Markdown, and below it the references.

    Args:
        layout: that of Table 3.
        records: all its records of one tier.

    Raises:
        DataError: if there is no finished run of a search.
    """
    column = find_column(layout.columns, FIRST_COLUMN)
    place = (FIRST_BLOCK, column.source)
    own = [r for r in records if (r.spec.block, r.spec.column) == place]
    lines = _first_lines(layout, own, column)
    names = [column.heading, *(f"{q:,} queries" for q in layout.query_budgets)]
    table = to_markdown(text_table(lines, names))
    return f"{table}\n\n{_remark(layout, own, column)}"


def pays_table(records: Mapping[str, Sequence[RunRecord]]) -> str:
    """Return where metric fine-tuning pays as Markdown.

    Args:
        records: of every experiment in `PAYS_COLUMNS`, by its name.
    """
    lines = []
    for experiment, name in PAYS_COLUMNS:
        columns = layout_of(experiment).columns
        column = next(each for each in columns if each.name == name)
        own = [r for r in records[experiment] if r.spec.column == column.source]
        texts = (_pays_text(own, row, column) for row in PAYS_ROWS)
        lines.append([column.heading, *texts])
    return to_markdown(text_table(lines, ["on test", *PAYS_ROWS.values()]))


def unseen_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return black boxes, untouched and after so many queries, as Markdown.

    Args:
        layout: of an experiment with the entries of `UNSEEN`.
        records: all its records of one tier.
    """
    lines = []
    for block, column in product(layout.blocks, layout.columns):
        place = (block.name, column.source)
        own = [r for r in records if (r.spec.block, r.spec.column) == place]
        if own:
            reading = layout.reading(column)
            untouched = reading.all_finals(of_row(own, "cross-entropy"))
            found = (
                at_budget(own, entry, queries, reading) for entry, queries in UNSEEN
            )
            lines.append([column.heading, *map(column.summary, (untouched, *found))])
    after = (f"{layout.entries[entry]}, {queries}" for entry, queries in UNSEEN)
    return to_markdown(text_table(lines, ["on test", "untouched", *after]))


def _pays_table(results: Path) -> str:
    """Return the second table of the committed reports.

    Raises:
        DataError: if one of them has no records.
    """
    names = {experiment for experiment, _ in PAYS_COLUMNS}
    return pays_table({name: committed(results, name) for name in names})


def _committed_table(
    make: Callable[[TableLayout, Sequence[RunRecord]], str],
    experiment: str,
    results: Path,
) -> str:
    """Return a table of the committed report of an experiment.

    Raises:
        DataError: if the report has no records, or too few for the table.
    """
    records = committed(results, experiment)
    return make(layout_of(experiment).fitted(records), records)


def tuned_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return how tools do over all tables of fitted classifiers, as Markdown."""
    lines = standing_lines(layout, records)
    return to_markdown(text_table(lines, ["tables of", *HEADINGS, "lost"]))


def claims_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return what was claimed and what came true, as Markdown."""
    return what_was_claimed(layout, judge(layout, records))[-1]


def bounds_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return how often bounds are met on test, over all columns, as Markdown."""
    return within_bounds(layout, judge(layout, records))[2]


TABLES: dict[str, Callable[[Path], str]] = {
    "first-table": partial(_committed_table, first_table, FIRST_EXPERIMENT),
    "when-it-pays": _pays_table,
    "unseen": partial(_committed_table, unseen_table, "unseen"),
    "tuned": partial(_committed_table, tuned_table, "tuned"),
    "tuned-bounds": partial(_committed_table, bounds_table, "tuned-bounds"),
    "coverage": partial(_committed_table, claims_table, "coverage"),
    "fair-line": short_line,
    "fair-summary": summary_table,
    "fair-table3": partial(group_table, "Table 3"),
    "fair-images": partial(group_table, "images"),
    "fair-aucpr": partial(group_table, "AUCPR"),
    "fair-all": partial(group_table, TOGETHER),
}
"""Name of every table of the pages, and what makes it of the folder of reports."""


def _first_lines(
    layout: TableLayout, records: Sequence[RunRecord], column: Column
) -> list[list[str]]:
    lines, reading = [], Reading(column, rows=layout.rows)
    for entry in SEARCHES:
        found = (at_budget(records, entry, q, reading) for q in layout.query_budgets)
        texts = [column.summary(values) for values in found]
        lines.append([layout.entries[entry], *texts])
    if all(text == NOTHING for line in lines for text in line[1:]):
        raise DataError(f"there is no finished run of a search in {column.name!r} yet")
    return lines


def _remark(layout: TableLayout, records: Sequence[RunRecord], column: Column) -> str:
    """Return the data, and what the entries reach that the table has no place for."""
    parts, reading = [], Reading(column, rows=layout.rows)
    for entry in REFERENCES:
        runs = [
            record
            for record in of_entry(records, entry, reading)
            if reading.finished(record)
        ]
        values = reading.all_finals(runs)
        parts.append(f"{layout.entries[entry]} {column.summary(values)}")
    replicates = count_range(list(Counter(r.spec.row for r in records).values()))
    variants = ", ".join(sorted(data_variants(records, column)))
    return f"{variants}, {replicates} replicates. To compare with: {'; '.join(parts)}."


def _pays_text(records: Sequence[RunRecord], row: str, column: Column) -> str:
    reading = Reading(column, replicated=False)
    runs = [record for record in of_row(records, row) if reading.finished(record)]
    return column.summary(reading.all_finals(runs))

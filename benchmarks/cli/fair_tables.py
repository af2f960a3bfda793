"""The fair summary as the pages show it: which columns are counted, and the tables."""

from functools import cache
from pathlib import Path
from statistics import fmean

from benchmarks.cli.committed import committed, layout_of
from benchmarks.report.columns import NOTHING
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
from benchmarks.report.render import text_table, to_markdown

GROUPS = {
    "Table 3": (
        (
            "table3",
            "balanced",
            (
                "a9a/mcr",
                "a9a/jaccard",
                "a9a/f1",
                "a9a/g-mean",
                "covtype-rare/f1",
                "covtype-rare/g-mean",
            ),
        ),
    ),
    "images": (
        (
            "mismatch",
            "natural",
            (
                "cifar10/worst-class-error",
                "cifar10/vehicle-animal-cost",
                "tail/f-macro",
                "tail/g-mean",
                "noise/mcr",
            ),
        ),
        ("table1", "natural", ("cifar10/mcr",)),
    ),
    "AUCPR": (
        (
            "table2",
            "natural",
            (
                "small/aucpr",
                "small/aucpr-macro-logits",
                "resnet32/aucpr",
                "resnet32/aucpr-macro-logits",
            ),
        ),
    ),
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
"""Arms of the short lines: ours and its sharpest rivals."""
SHOWN = (*SHARP, "trust-region-bo", "cma-es")
"""Arms of the table shown first; the whole tables have all."""


def summary_table(results: Path) -> str:
    """Return the regret in every group, and shares and harm over all, as Markdown."""
    groups = _matches(results, FIRST_BUDGET)
    found = {name: _by_arm(group) for name, group in groups.items()}
    lines = []
    for arm in sorted(SHOWN, key=lambda arm: _order(found, arm)):
        own = [group.get(arm) for group in found.values()]
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


def short_lines(results: Path) -> str:
    """Return the regret of the strongest rows in every group, a line each."""
    lines = []
    for name, group in _matches(results, FIRST_BUDGET).items():
        own = [each for each in standings(group) if each.row.name in SHARP]
        texts = (f"{each.row.label} {fraction(each.regret)}" for each in own)
        lines.append(f"- {name}, {len(group)} columns: {', '.join(texts)}.")
    return "\n".join(lines)


@cache
def _places(results: Path) -> dict[str, list[Place]]:
    """Return the columns of every group."""
    return {
        name: [
            place
            for experiment, *where in parts
            for place in places(
                layout_of(experiment), committed(results, experiment), *where
            )
        ]
        for name, parts in GROUPS.items()
    }


@cache
def _matches(results: Path, budget: int) -> dict[str, list[Match]]:
    """Return the columns of every group, and of all together, within a budget."""
    found = {name: matches(own, budget) for name, own in _places(results).items()}
    return {**found, TOGETHER: [match for group in found.values() for match in group]}


def _by_arm(group: list[Match]) -> dict[str, Standing]:
    return {standing.row.name: standing for standing in standings(group)}


def _order(found: dict[str, dict[str, Standing]], arm: str) -> float:
    """Return the mean regret of a row over the groups that it is in."""
    own = (found[name].get(arm) for name in GROUPS)
    return fmean(standing.regret for standing in own if standing)


def _size(group: list[Match]) -> str:
    room = sum(match.has_room for match in group)
    return f"{len(group)}, room in {room}"

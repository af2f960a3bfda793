"""What every method is, and how it does over all tables within a budget of queries."""

import inspect
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import fmean

from benchmarks.cli import catalogue
from benchmarks.report.columns import Reading
from benchmarks.report.fair_summary import Match, Place, matches, places
from benchmarks.rows.contract import Row
from benchmarks.runs.spec import Arm
from benchmarks.website.reports import MAIN_TIER, Report
from benchmarks.website.table_page import fragment
from metricopt.errors import DataError
from metricopt.files import read_text

BUDGETS = (15, 50, 500)
LEAST = 3
"""Rows that a column needs, so that a rank says something."""
NAMED = 3
"""Columns that are named where a method wins, and where it loses."""
OF_METHOD = ("method", "network", "learner", "theta")
"""Kinds of arm that are described by the method they run."""
KINDS = (*catalogue.METHODS, "learner", "loss", "embedding loss")
EQUATIONS = Path(__file__).with_name("equations.json")
"""The equation that is the heart of a method, by the name of the method.

M is the metric as a cost, a script l a loss, phi the adapter, f a value function, p_k
the probability of class k.
"""


@dataclass(frozen=True)
class Spot:
    """A column of a table, as a link to the cell of a method there."""

    page: str
    link: str
    title: str
    regret: float


@dataclass(frozen=True)
class Within:
    """How a row does within a budget, every table counting once.

    Attributes:
        rank: mean rank among the rows of a column, 1 is the best.
        among: mean number of these rows.
        regret: mean distance to the best cost, as a share of the metric's range.
        columns, tables: how many it is over.
    """

    rank: float
    among: float
    regret: float
    columns: int
    tables: int


@dataclass
class Standing:
    """One row over all tables.

    Attributes:
        row: as the first table has it.
        within: how it does, by budget; without the budgets at which it is not compared.
        verdicts: how often it is better than its base, and the like.
        wins, losses: columns where it is the best at any budget, or farthest behind.
    """

    row: Row
    within: dict[int, Within] = field(default_factory=dict)
    verdicts: dict[str, int] = field(default_factory=dict)
    wins: list[Spot] = field(default_factory=list)
    losses: list[Spot] = field(default_factory=list)


@dataclass(frozen=True)
class Method:
    """A method with its rows.

    Attributes:
        name: as registered.
        title: the first line of its docstring.
        about: the paragraphs after it, without the source.
        source: the paper.
        equation: its heart.
        standings: of its rows.
    """

    name: str
    title: str
    about: Sequence[str]
    source: str
    equation: str
    standings: Sequence[Standing]


def methods(reports: Sequence[Report]) -> list[Method]:
    """Return all methods that have runs, by name."""
    found = _standings(reports)
    groups: dict[str, list[Standing]] = defaultdict(list)
    for (unit, _), standing in found.items():
        groups[unit].append(standing)
    described, equations = _described(), json.loads(read_text(EQUATIONS))
    return [
        _method(unit, described.get(unit, ""), equations.get(unit, ""), own)
        for unit, own in sorted(groups.items())
    ]


def _method(
    unit: str, text: str, equation: str, standings: Sequence[Standing]
) -> Method:
    title, *rest = text.split("\n\n")
    about = [part for part in rest if not part.startswith("Source:")]
    source = next((part for part in rest if part.startswith("Source:")), "")
    return Method(unit, title, about, source, equation, standings)


def _described() -> dict[str, str]:
    """Return the docstrings of all methods by name; those of losses where none is."""
    kinds = {kind.name: kind for kind in catalogue.kinds()}
    found: dict[str, str] = {}
    for kind in map(kinds.__getitem__, KINDS):
        texts = catalogue.described(kind)
        for unit, text in texts.items():
            if list(texts.values()).count(text) > 1:
                # A file of several units; each has a docstring of its own.
                text = inspect.getdoc(_registered(kind, unit)) or text
            found.setdefault(unit, text)
    return found


def _registered(kind: catalogue.Kind, unit: str) -> object:
    """Return what is registered by a name: a class, or what runs a kind of arm."""
    found = getattr(import_module(kind.module), kind.variable).get(unit)
    run: object = found if inspect.isclass(found) else found.run
    return run


def unit_of(arm: Arm) -> str:
    """Return the name of the method that fills a row."""
    return arm.name if arm.kind in OF_METHOD and arm.name else arm.kind


def _standings(reports: Sequence[Report]) -> dict[tuple[str, str], Standing]:
    """Return the standing of every row by the names of its method and its entry."""
    found: dict[tuple[str, str], Standing] = {}
    units: dict[str, str] = {}
    for report in reports:
        if report.tier != MAIN_TIER:
            continue
        for cell in report.cells:
            row = cell.row
            if row.budget is None:
                unit = unit_of(cell.records[0].spec.arm)
                units.setdefault(row.name, unit)
                standing = found.setdefault((unit, row.name), Standing(row))
                counts = standing.verdicts
                counts[cell.verdict] = counts.get(cell.verdict, 0) + 1
    by_row = {row: standing for (_, row), standing in found.items()}
    _compare([r for r in reports if r.tier == MAIN_TIER], by_row)
    return found


def _compare(reports: Sequence[Report], standings: Mapping[str, Standing]) -> None:
    """Fill in how rows do at every budget, and where they win and lose."""
    spots: dict[str, list[Spot]] = defaultdict(list)
    compared = list(_compared(reports))
    for budget in BUDGETS:
        found: dict[str, dict[str, list[tuple[int, int, float]]]] = {}
        for report, column, match in _matches(compared, budget):
            costs = sorted(match.costs.values())
            for entry, cost in match.costs.items():
                line = (costs.index(cost) + 1, len(costs), cost - match.best)
                of_entry = found.setdefault(entry, {})
                of_entry.setdefault(report.name, []).append(line)
                if budget == BUDGETS[1]:
                    spots[entry].append(_spot(report, column, entry, line[2]))
        for entry, tables in found.items():
            if entry in standings:
                standings[entry].within[budget] = _within(tables)
    for entry, own in spots.items():
        if entry in standings:
            own.sort(key=lambda spot: spot.regret)
            standings[entry].wins = [s for s in own if s.regret == 0][:NAMED]
            standings[entry].losses = [s for s in own[::-1] if s.regret > 0][:NAMED]


def _within(tables: Mapping[str, Sequence[tuple[int, int, float]]]) -> Within:
    means = [
        [fmean(part) for part in zip(*own, strict=True)] for own in tables.values()
    ]
    rank, among, regret = (fmean(part) for part in zip(*means, strict=True))
    return Within(rank, among, regret, sum(map(len, tables.values())), len(tables))


def _spot(
    report: Report, column: tuple[str, str, str], entry: str, regret: float
) -> Spot:
    block, name, heading = column
    title = f"{report.name}: {heading}"
    return Spot(report.name, fragment(block, entry, name), title, regret)


Compared = tuple[Report, tuple[str, str, str], Place]
"""A report, names of a block and a column and its heading, and what is in it."""


def _matches(
    compared: Sequence[Compared], budget: int
) -> Iterator[tuple[Report, tuple[str, str, str], Match]]:
    """Yield the columns in which enough rows have a cost within a budget."""
    for report, column, place in compared:
        if place.entries(budget):
            (match,) = matches([place], budget)
            if len(match.costs) >= LEAST:
                yield report, column, match


def _compared(reports: Sequence[Report]) -> Iterator[Compared]:
    """Yield every column in which rows are compared."""
    for report in reports:
        for block in report.layout.blocks:
            for column, place in _places(report, block.name):
                heading = f"{place.reading.column.heading}, {block.label}"
                yield report, (block.name, column, heading), place


def _places(report: Report, block: str) -> Iterator[tuple[str, Place]]:
    """Yield the columns of a block whose runs work towards what the column shows."""
    layout = report.layout
    if layout.untouched_row is None or layout.of_learners:
        return
    for column in layout.columns:
        own = [
            record
            for record in report.records
            if (record.spec.block, record.spec.column) == (block, column.source)
        ]
        if own and Reading(column).is_aim_of(own):
            try:
                (place,) = places(layout, own, block, [column.name])
            except DataError:  # without a finished run of the untouched network
                continue
            yield column.name, place

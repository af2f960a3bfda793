"""The fair summary: what rows reach within one budget of queries, over many columns.

Single columns let anybody win somewhere. Here every row that sees no more than outputs
and labels is held to the best of these rows, column by column, on the replicates that
all of them have. Costs are on test, as shares of the range of the metric.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

from benchmarks.report.columns import NOTHING, Reading, find_column
from benchmarks.report.curves import at_budget, of_entry, of_place, of_row, values_at
from benchmarks.report.layout import TableLayout
from benchmarks.rows.contract import Row
from benchmarks.runs.record import RunRecord
from metricopt.errors import DataError

LEVELS = ("metric values", "loss gradients", "outputs and labels")
"""What the compared rows see, see `Row.sees`: more would be another question."""
ROOM = 0.003
"""The least gain of the best row in a column that counts as having room."""


@dataclass(frozen=True)
class Place:
    """One column of one block: the records that may be compared there.

    Attributes:
        reading: of the column.
        rows: what is compared, by entry.
        untouched: records of the untouched network.
        records: finished runs of the rows, all on the untouched network.
    """

    reading: Reading
    rows: Mapping[str, Row]
    untouched: tuple[RunRecord, ...]
    records: tuple[RunRecord, ...]

    def entries(self, queries: int) -> set[str]:
        """Return the entries that have a value within a budget."""
        return {
            entry
            for entry in self.rows
            if at_budget(self.records, entry, queries, self.reading)
        }


@dataclass(frozen=True)
class Match:
    """Costs of all entries in one column within one budget.

    Attributes:
        untouched: mean cost of the untouched network.
        costs: mean cost of every entry.
        queries: the most queries that a run made by then, of every entry.
        rows: the row of every entry.
    """

    untouched: float
    costs: Mapping[str, float]
    queries: Mapping[str, int]
    rows: Mapping[str, Row]

    @cached_property
    def best(self) -> float:
        """The lowest cost."""
        return min(self.costs.values())

    @property
    def has_room(self) -> bool:
        """Whether the best entry is clearly ahead of the untouched network."""
        return self.untouched - self.best >= ROOM

    def reached(self, entry: str) -> float:
        """Return the gain of an entry as a share of the best gain; below 0 is harm."""
        return (self.untouched - self.costs[entry]) / (self.untouched - self.best)


@dataclass(frozen=True)
class Standing:
    """How an entry does over all columns of a group.

    Attributes:
        row: of the entry.
        queries: the most queries that a run made.
        regret: mean distance to the best cost, over all columns.
        reached: gain as a share of the best gain, of every column with room.
        harm: the most that a column is worse than untouched; 0 if none is.
    """

    row: Row
    queries: int
    regret: float
    reached: tuple[float, ...]
    harm: float

    @property
    def texts(self) -> list[str]:
        """What the table says: name, sight, queries, regret, shares and harm."""
        shares = self.reached
        numbers = (fmean(shares), median(shares), min(shares)) if shares else ()
        return [
            self.row.label,
            self.row.sees,
            str(self.queries),
            fraction(self.regret),
            *([f"{100 * n:z.0f} %" for n in numbers] or 3 * [NOTHING]),
            fraction(self.harm),
        ]


HEADINGS = ("method", "sees", "queries", "regret", "mean", "median", "least", "harm")
"""Names of the parts of `Standing.texts`."""


def places(
    layout: TableLayout,
    records: Sequence[RunRecord],
    block_name: str,
    column_names: Sequence[str],
) -> list[Place]:
    """Return columns of one block of an experiment.

    Args:
        layout: of the experiment; it has an untouched row.
        records: all its records of one tier.
        block_name: whose columns.
        column_names: which of them.

    Raises:
        DataError: if there is no such column, or no finished run of the untouched
            network in it.
    """
    layout = layout.fitted(records)
    (block,) = (block for block in layout.blocks if block.name == block_name)
    rows = {row.name: row for row in layout.rows if row.name in layout.entries}
    compared = {entry: row for entry, row in rows.items() if row.sees in LEVELS}
    found = []
    for column in (find_column(layout.columns, name) for name in column_names):
        own = of_place(records, block, column)
        untouched = of_row(own, layout.untouched_row or "")
        if not untouched:
            raise DataError(f"there is no untouched network in {column.name!r} yet")
        networks = {record.data.get("theta") for record in untouched}
        on_it = [record for record in own if record.data.get("theta") in networks]
        reading = layout.reading(column)
        found.append(Place(reading, compared, tuple(untouched), tuple(on_it)))
    return found


def matches(group: Sequence[Place], queries: int) -> list[Match]:
    """Compare entries that have a value in every column of a group within a budget."""
    entries = set.intersection(*(place.entries(queries) for place in group))
    return [_match(place, entries, queries) for place in group]


def standings(group: Sequence[Match]) -> list[Standing]:
    """Return the standing of every entry that is in all matches, the best first."""
    entries = set.intersection(*(set(match.costs) for match in group))
    found = [
        Standing(
            row=group[0].rows[entry],
            queries=max(match.queries[entry] for match in group),
            regret=fmean(match.costs[entry] - match.best for match in group),
            reached=tuple(match.reached(entry) for match in group if match.has_room),
            harm=max(0.0, *(match.costs[entry] - match.untouched for match in group)),
        )
        for entry in sorted(entries)
    ]
    return sorted(found, key=lambda standing: standing.regret)


def fraction(value: float) -> str:
    """Return a share of the range of a metric, such as `.0532`."""
    return f"{value:.4f}".replace("0.", ".", 1)


def _match(place: Place, entries: Iterable[str], queries: int) -> Match:
    """Compare some entries in one column, on the replicates that all of them have."""
    runs = {entry: of_entry(place.records, entry, place.reading) for entry in entries}
    groups = [place.untouched, *runs.values()]
    numbers = [{record.spec.replicate for record in own} for own in groups]
    common = set.intersection(*numbers)
    shared = [r for r in place.records if r.spec.replicate in common]
    base = [r for r in place.untouched if r.spec.replicate in common]
    costs, spent = {}, {}
    for entry in entries:
        costs[entry] = _cost(place, at_budget(shared, entry, queries, place.reading))
        spent[entry] = max(
            _spent(record, queries)
            for record in of_entry(shared, entry, place.reading)
            if values_at(record, "test", queries, place.reading)
        )
    untouched = _cost(place, place.reading.all_finals(base))
    return Match(untouched, costs, spent, place.rows)


def _cost(place: Place, values: Sequence[float]) -> float:
    column = place.reading.column
    return column.cost(fmean(values)) / column.range


def _spent(record: RunRecord, queries: int) -> int:
    """Return the queries that a run had made when the budget did not allow more."""
    counts = (record.queries, *(point.queries for point in record.trace))
    return max(count for count in counts if count <= queries)

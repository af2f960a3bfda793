"""The table: which rows run on which problem towards which metric, and how it looks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.problems.problem import Problem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout
from benchmarks.rows.contract import ROWS, UNTOUCHED, Family, Row
from benchmarks.rows.rivals import unlisted
from benchmarks.runs.codec import merged
from benchmarks.runs.spec import RunSpec, Spending, Unit
from benchmarks.tables.registry import Experiment, check_tier
from metricopt.errors import ConfigError
from metricopt.registry import Registry

ALSO = {"jaccard": ("jaccard-legacy",), "aucpr": ("aucpr-macro-logits",)}
"""Further metrics that results are judged by, by the metric of the run."""
FAMILIES = get_args(Family)


Here = Callable[[Problem], Problem]
"""What gives a problem the data that is here; see `Problem.here`."""


@dataclass(frozen=True)
class LeftOut:
    """Rows that are left out of a place, whether they suit or not.

    Attributes:
        reason: why, in words.
        rows: the rows.
    """

    reason: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Place:
    """A problem with a metric in a block of a table, which rows fill.

    Attributes:
        block: name of the block.
        problem: what rows are run on.
        metric: what their runs work towards.
        column: name of the column in records; empty for problem and metric.
        own: rows of this table alone, beside all that suit.
        rows: rows that are asked for here, and no others; None for all that suit.
        asks: why these rows alone, in words.
        left_out: rows that are left out, with reasons.
        also: further metrics that results are judged by; those of `ALSO` if empty.
        few: whether primary rows, too, have the few replicates of secondary ones.

    Raises:
        ConfigError: if rows are asked for and others are added or left out, or a row
            of the table has the name of a registered one.
    """

    block: str
    problem: Problem
    metric: Unit
    column: str = ""
    own: tuple[Row, ...] = ()
    rows: tuple[Row, ...] | None = None
    asks: str = "this table asks for other rows"
    left_out: tuple[LeftOut, ...] = ()
    also: tuple[Unit, ...] = ()
    few: bool = False

    def __post_init__(self) -> None:
        if self.rows is not None and (self.own or self.left_out):
            raise ConfigError(
                f"{self.name} names its rows, so `own` and `left_out` must be empty"
            )
        taken = {row.name for row in self.own} & set(ROWS)
        if taken:
            raise ConfigError(
                "rows of a table must not have the names of registered rows, got "
                f"{', '.join(sorted(taken))} in {self.name}"
            )

    @property
    def name(self) -> str:
        """Name of the column in records."""
        return self.column or f"{self.problem.name}/{self.metric.label}"

    @property
    def metrics(self) -> tuple[Unit, ...]:
        """What the runs work towards, then what their results are judged by too."""
        usual = tuple(Unit(name) for name in ALSO.get(self.metric.label, ()))
        return (self.metric, *(self.also or usual))

    def standing(self) -> list[Row]:
        """Return the rows that run here, in the order of tables."""
        if self.rows is not None:
            return list(self.rows)
        return [r for r in (*all_rows(), *self.own) if not self.why_not(r)]

    def why_not(self, row: Row) -> str:
        """Return why a row does not run here, in words; empty if it does."""
        if self.rows is not None:
            return "" if row.name in {each.name for each in self.rows} else self.asks
        reason = row.why_not(self.problem, self.metric)
        reasons = (
            each.reason
            for each in self.left_out
            if row.name in {other.name for other in each.rows}
        )
        return reason or next(reasons, "")

    def specs(
        self, experiment: str, tier: str, replicates: int | None, here: Here
    ) -> Iterator[RunSpec]:
        """Yield the specs of all rows that run here.

        Args:
            experiment: name of the table.
            tier: of the runs.
            replicates: of every row that does not ask for fewer; None for the size's.
            here: gives a problem the data that is here.
        """
        problem = here(self.problem)
        for row in self.standing():
            found = row.on(problem)
            run = row.run(found, self.metric)
            pipeline = found.pipeline(offsets=run.offsets and found.has_offsets)
            arm = run.arm
            if tier == "smoke" and arm.kind == "method":
                arm = replace(arm, settings=merged(row.short, arm.settings))
            if row.learns_on is not None:
                source = here(row.learns_on).pipeline(offsets=run.offsets)
                arm = replace(arm, source=source)
            for replicate in range(self._count(row, replicates)):
                yield RunSpec(
                    experiment=experiment,
                    tier=tier,
                    block=self.block,
                    row=row.name,
                    column=self.name,
                    replicate=replicate,
                    pipeline=pipeline,
                    metric=self.metrics[0],
                    also=self.metrics[1:],
                    arm=arm,
                    budget=Spending(run.queries, problem.size.steps),
                    meta_tests=run.meta_tests,
                    diagnose=run.diagnose,
                    value_functions=run.value_functions,
                    pictured=row.is_pictured and found.is_pictured and not replicate,
                )

    def _count(self, row: Row, asked: int | None) -> int:
        size = self.problem.size
        wanted = asked or size.replicates
        if row.is_primary and not self.few:
            return wanted
        return min(wanted, size.few_replicates or wanted)


def all_rows() -> list[Row]:
    """Return all rows in the order of tables: by family, then as registered.

    A registered rival without a row of its own has one made for it.
    """
    found = [ROWS.get(name) for name in ROWS.in_order()]
    return in_order([*found, *unlisted({row.name for row in found})])


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows family by family, otherwise in the order they come in."""
    return sorted(rows, key=lambda row: FAMILIES.index(row.family))


def brief_rows(problem: Problem, metric: Unit, *without: Row) -> tuple[Row, ...]:
    """Return the rows that stand for their families where few are shown.

    Args:
        problem: what they are run on.
        metric: what their runs work towards.
        *without: rows that are left out.
    """
    left_out = {row.name for row in without}
    return tuple(
        row
        for row in all_rows()
        if row.is_brief
        and row.name not in left_out
        and not row.why_not(problem, metric)
    )


def rows_in(
    places: Sequence[Place],
    untouched: str | None,
    paper_table: str | None,
    order: Sequence[Row] = (),
) -> tuple[Row, ...]:
    """Return the rows of a table, with their bases and the paper's rows resolved.

    Args:
        places: where rows run.
        untouched: name of the untouched network's row; None if it has none.
        paper_table: what the table is held beside; None for nothing.
        order: rows in the order of the table; empty for by family where a place takes
            all rows that suit, else as the places name them.
    """
    standing: dict[str, Row] = {}
    for place in places:
        for row in place.standing():
            standing.setdefault(row.name, row)
    called = {UNTOUCHED: untouched}

    def placed(row: Row) -> Row:
        bases = (called.get(base, base) for base in row.base)
        base = next((name for name in bases if name in standing), None)
        return replace(row, base_row=base, paper_row=row.paper.get(paper_table or ""))

    names = [row.name for row in order]
    if not order and any(place.rows is None for place in places):
        known = {row.name: row for row in all_rows()} | standing
        names = [row.name for row in in_order(known.values())]
    names = [*(name for name in names if name in standing), *standing]
    return tuple(placed(standing[name]) for name in dict.fromkeys(names))


@dataclass(frozen=True)
class Table:
    """One table at a tier.

    Attributes:
        layout: how it looks.
        places: where its rows run.
    """

    layout: TableLayout
    places: tuple[Place, ...]

    def specs(
        self, tier: str, replicates: int | None, offline: bool | None
    ) -> list[RunSpec]:
        """Return the runs.

        Args:
            tier: the tier of the table.
            replicates: of every row that does not ask for fewer; None for the size's.
            offline: see `benchmarks.data.registry.resolve_variant`.
        """
        known: dict[Problem, Problem] = {}

        def here(problem: Problem) -> Problem:
            if problem not in known:
                known[problem] = problem.here(offline)
            return known[problem]

        name = self.layout.experiment
        return [
            spec
            for place in self.places
            for spec in place.specs(name, tier, replicates, here)
        ]

    def left_out(self) -> dict[str, list[str]]:
        """Return the labels of rows that it lacks somewhere, by the reasons in words.

        "in part" stands before the reasons of rows that run in other columns. Columns
        that name their rows tell nothing where others take all that suit.
        """
        found: dict[str, list[str]] = {}
        shown = {row.name for row in self.layout.rows}
        # Places that take all rows say more of a row than places that name theirs.
        open_ones = [place for place in self.places if place.rows is None]
        for row in all_rows():
            for place in open_ones or self.places:
                reason = place.why_not(row)
                if reason and row.name in shown:
                    reason = f"in part: {reason}"
                if reason and row.label not in found.setdefault(reason, []):
                    found[reason].append(row.label)
        return found


def table(
    places: Sequence[Place], *, order: Sequence[Row] = (), **fields: Any
) -> Table:
    """Return a table whose rows are those that run in its places.

    Args:
        places: where rows run.
        order: rows in the order of the table; see `rows_in`.
        **fields: further fields of its layout.
    """
    untouched, paper = fields.get("untouched_row"), fields.get("paper_table")
    rows = rows_in(places, untouched, paper, order)
    # The experiment gives the name; see `experiment_of`.
    known = {"experiment": "", "network_of": network_of, **fields}
    layout = TableLayout(rows=rows, **known)
    return Table(layout, tuple(places))


@dataclass(frozen=True)
class Addition:
    """A column that a file of its own adds to a table.

    Attributes:
        table: name of the table.
        column: makes the column, as the table shows it.
        place: where its rows run, by tier.
    """

    table: str
    column: Callable[[], Column]
    place: Callable[[str], Place]


ADDITIONS: Registry[Addition] = Registry("added column", "benchmarks.tables")


def _extended(found: Table, tier: str) -> Table:
    layout = found.layout
    units = (ADDITIONS.get(name) for name in ADDITIONS)
    added = [unit for unit in units if unit.table == layout.experiment]
    if not added:
        return found
    columns = (*layout.columns, *(unit.column() for unit in added))
    new = [unit.place(tier) for unit in added]
    _check_added(layout.blocks, columns, new)
    places = (*found.places, *new)
    rows = rows_in(places, layout.untouched_row, layout.paper_table)
    return Table(replace(layout, columns=columns, rows=rows), places)


def _check_added(
    blocks: Sequence[Block], columns: Sequence[Column], new: Sequence[Place]
) -> None:
    for kind, known, asked in (
        ("block", {block.name for block in blocks}, {place.block for place in new}),
        ("column", {c.source for c in columns}, {place.name for place in new}),
    ):
        if not asked <= known:
            raise ConfigError(
                f"an added column must stand in a {kind} of its table, one of "
                f"{', '.join(sorted(known))}; got {', '.join(sorted(asked - known))}"
            )


def experiment_of(
    name: str, make: Callable[[str], Table], *, takes_days: bool = False
) -> Experiment:
    """Return the experiment of a table.

    Args:
        name: as in `./reproduce.sh NAME`.
        make: the table at a tier.
        takes_days: see `Experiment`.
    """

    def at(tier: str) -> Table:
        check_tier(tier, None)
        found = make(tier)
        layout = replace(found.layout, experiment=name)
        return _extended(replace(found, layout=layout), tier)

    def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
        check_tier(tier, replicates)
        return at(tier).specs(tier, replicates, offline)

    return Experiment(
        name,
        lambda tier: at(tier).layout,
        specs,
        lambda tier: at(tier).left_out(),
        takes_days=takes_days,
    )

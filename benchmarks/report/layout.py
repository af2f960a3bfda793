"""What a table looks like: blocks, rows and columns, and which records it takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from benchmarks.report.columns import Column, Reading
from benchmarks.report.paper_values import PaperValue, find_paper_value
from benchmarks.rows.contract import Row
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError, DataError


@dataclass(frozen=True)
class Block:
    """A part of the table, such as the sampling of mini-batches.

    Attributes:
        name: as in `RunSpec.block`.
        label: as printed.
        not_comparable: why its cells are not comparable with the paper; empty if so.
        paper_part: put before the rows of the paper that its rows reproduce.
    """

    name: str
    label: str
    not_comparable: str = ""
    paper_part: str = ""


@dataclass(frozen=True)
class FirstLook:
    """What a reader is shown first: a row beside others in columns, each with a word.

    The word is what the reader should see there.
    """

    entry: str
    others: tuple[str, ...]
    columns: Mapping[str, str]


@dataclass(frozen=True)
class OverTasks:
    """A table whose runs are judged on many new tasks each.

    Attributes:
        rows: rows that are compared, task by task.
        against: rows that they are compared with.
        reach: row whose accuracy after its steps of meta-training others are to reach;
            None where runs do not note how they adapt.
        learners: whether runs are learners; if not they are optimizers, and a task is
            a start of phi with its mini-batches.
    """

    rows: tuple[str, ...]
    against: tuple[str, ...]
    reach: str | None = None
    learners: bool = True


@dataclass(frozen=True)
class TableLayout:
    """One experiment as a table.

    Attributes:
        experiment: as in `RunSpec.experiment`.
        title: one line.
        caption: what is shown, without tier and data, which records tell.
        convention: which class is positive, at which threshold, and the like.
        blocks, rows, columns: in the order of printing.
        paper_table: such as `Table 3`; None without a paper's table.
        loss_only_row: row the closed gap is counted from; None for no such table.
        threshold_shift_row: row the closed gap is counted to.
        untouched_row: the network as it was before a run; None if it has no row.
        ablation_rows: rows of the ablation figure, empty for no figure.
        cloud_rows: rows of the figures of predictions and of curves; empty for all.
        query_budgets: budgets compared at equal queries, increasing.
        replicated: whether there are several replicates, which spread and tests are
            then over; records decide, see `fitted`.
        mixed: whether columns may have one replicate where others have several.
        once: sources of those that do; records decide, see `fitted`.
        first_look: the figure of a first look; None for none.
        rival_row: tested rows are also compared with this one; None for no section.
        summed: names of blocks over whose columns rows are summed up, by a label; needs
            an untouched row.
        claims_row: row whose expected gains are held against its gains on test over
            the untouched row; None for no section and no figure of them.
        mismatch_rows: rows of the figure of gain over mismatch; the runs of the first
            note the mismatch. Empty for no figure.
        network_of: readable identity of the network that was there before a run; needed
            where records name networks.
        observed_of: size of the observe split of a run; None for no figure over it.
        over_tasks: what is compared task by task; None for nothing.
        notes: how it was made, and how to read it, below the tables. What came out
            stands in cells, since it changes when runs are repeated.

    Raises:
        ConfigError: if a name is used twice, the layout refers to a row it lacks, the
            metric of a column is unknown, or its unit is not that of the paper.
    """

    experiment: str
    title: str
    caption: str
    convention: str
    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    paper_table: str | None = None
    loss_only_row: str | None = None
    threshold_shift_row: str | None = None
    untouched_row: str | None = None
    ablation_rows: tuple[str, ...] = ()
    cloud_rows: tuple[str, ...] = ()
    query_budgets: tuple[int, ...] = (50, 150, 500, 1500, 5000)
    first_look: FirstLook | None = None
    replicated: bool = True
    mixed: bool = False
    once: frozenset[str] = frozenset()
    rival_row: str | None = None
    claims_row: str | None = None
    summed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mismatch_rows: tuple[str, ...] = ()
    network_of: Callable[[RunSpec], str] | None = None
    observed_of: Callable[[RunSpec], int] | None = None
    over_tasks: OverTasks | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = {"block": self.blocks, "row": self.rows, "column": self.columns}
        for kind, units in parts.items():
            names = [unit.name for unit in units]
            for name in names:
                if names.count(name) > 1:
                    raise ConfigError(f"expected one {kind} {name!r}, got two")
        wanted = {row.base_row for row in self.rows}
        wanted |= {row.rival_row for row in self.rows}
        wanted |= {*self.ablation_rows, *self.cloud_rows, *self.mismatch_rows}
        wanted |= {self.loss_only_row, self.threshold_shift_row, self.rival_row}
        wanted |= {self.untouched_row, self.claims_row}
        if self.over_tasks is not None:
            wanted |= {*self.over_tasks.rows, *self.over_tasks.against}
            wanted.add(self.over_tasks.reach)
        for name in sorted(name for name in wanted if name is not None):
            if name not in self.row_names:
                raise ConfigError(f"the layout refers to the row {name!r} it lacks")
        if self.claims_row and not self.untouched_row:
            raise ConfigError(
                f"the claims of {self.claims_row!r} are held against the untouched "
                "network, so the layout must name its `untouched_row`"
            )
        for column in self.columns:
            self._check_unit(column)

    @property
    def of_learners(self) -> bool:
        """Whether runs are learners, each judged on many new tasks."""
        return self.over_tasks is not None and self.over_tasks.learners

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Names of all rows."""
        return tuple(row.name for row in self.rows)

    @cached_property
    def entries(self) -> dict[str, str]:
        """Label of each entry, a row with its variants of other budgets, by name."""
        plain = (row for row in self.rows if row.variant_of not in self.row_names)
        return {row.entry: row.label for row in plain}

    @property
    def compared_entries(self) -> dict[str, str]:
        """Label of each entry that is compared at equal queries, by name."""
        compared = {row.entry for row in self.rows if row.compared}
        return {name: label for name, label in self.entries.items() if name in compared}

    @property
    def sees(self) -> dict[str, str]:
        """What each row and entry knows of a problem, by label; see `Row.sees`."""
        return {row.label: row.sees for row in self.rows}

    def fitted(self, records: Sequence[RunRecord]) -> "TableLayout":
        """Return the layout for these records, which have several replicates or one.

        With a single replicate, spread is over meta-tests or value functions.
        """
        known: dict[str, set[int]] = {}
        for record in records:
            column = record.spec.column if self.mixed else ""
            known.setdefault(column, set()).add(record.spec.replicate)
        once = frozenset(name for name, numbers in known.items() if len(numbers) == 1)
        several = len(once) < len(known)
        return replace(self, replicated=several, once=once if several else frozenset())

    def is_replicated(self, column: Column) -> bool:
        """Return whether a column has several replicates."""
        return self.replicated and column.source not in self.once

    def reading(self, column: Column) -> Reading:
        """Return how the values of a column are read from records."""
        return Reading(column, self.is_replicated(column), self.rows)

    def paper_row(self, row: Row, block: Block) -> str | None:
        """Return the row of the paper that a row of a block reproduces, if any."""
        return None if row.paper_row is None else block.paper_part + row.paper_row

    def paper_value(self, row: Row, column: Column, block: Block) -> PaperValue | None:
        """Return what the paper prints for a row and column, None if nothing."""
        table, name = self.paper_table, self.paper_row(row, block)
        if table is None or name is None or column.paper_column is None:
            return None
        return find_paper_value(table, name, column.paper_column)

    def _check_unit(self, column: Column) -> None:
        unit = column.unit  # an unknown metric is an error here, and not when drawn
        for row, block in product(self.rows, self.blocks):
            printed = self.paper_value(row, column, block)
            if printed is not None and printed.unit != unit:
                raise ConfigError(
                    f"column {column.name!r} is in {unit}, "
                    f"and the paper prints {printed.unit}"
                )


def check_records(layout: TableLayout, records: Sequence[RunRecord]) -> None:
    """Check that these records may share one table.

    Raises:
        DataError: if there is none, they are of other experiments or several
            tiers, the layout lacks a place for one, a column shows a metric that
            its runs were not judged by, one column of a block mixes data variants, or
            runs of one network were made on several, such as one released and one
            trained here.
    """
    if not records:
        raise DataError(f"expected records of {layout.experiment!r}, got none")
    for record in records:
        _check_place(layout, record)
    _check_one("tier", {record.spec.tier for record in records})
    for column in layout.columns:
        _check_metric(column, records)
    for block in layout.blocks:
        own = [r for r in records if r.spec.block == block.name]
        for column in layout.columns:
            what = f"data variant in {block.name!r}, column {column.name!r}"
            _check_one(what, data_variants(own, column))
    for name, thetas in _network_digests(layout, records).items():
        _check_one(f"pre-trained network of {name}", thetas)


def _check_place(layout: TableLayout, record: RunRecord) -> None:
    spec = record.spec
    if spec.experiment != layout.experiment:
        raise DataError(
            f"expected records of {layout.experiment!r}, got {spec.experiment!r}"
        )
    for kind, name, known in (
        ("block", spec.block, [block.name for block in layout.blocks]),
        ("row", spec.row, layout.row_names),
        ("column", spec.column, [column.source for column in layout.columns]),
    ):
        if name not in known:
            raise DataError(
                f"a record has the {kind} {name!r}, which the layout of "
                f"{layout.experiment!r} lacks"
            )


def _check_metric(column: Column, records: Sequence[RunRecord]) -> None:
    specs = [r.spec for r in records if r.spec.column == column.source]
    judged = {unit.label for spec in specs for unit in spec.metrics}
    if judged and column.metric.label not in judged:
        raise DataError(
            f"column {column.name!r} shows {column.metric.label}, and its runs "
            f"were judged by {', '.join(sorted(judged))}"
        )


def _network_digests(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[str, set[str]]:
    """Return the digests of each network that was there before its runs."""
    found: dict[str, set[str]] = {}
    for record in records:
        if "theta" in record.data:
            if layout.network_of is None:
                raise DataError(
                    f"records of {layout.experiment!r} name networks, and its layout "
                    "does not say which runs share one"
                )
            name = layout.network_of(record.spec)
            found.setdefault(name, set()).add(record.data["theta"])
    return found


def _check_one(what: str, found: set[str]) -> None:
    if len(found) > 1:
        raise DataError(f"a table shows one {what}, got {', '.join(sorted(found))}")


def data_variants(records: Sequence[RunRecord], column: Column) -> set[str]:
    """Return the data variants named by the records of a column."""
    own = (record for record in records if record.spec.column == column.source)
    return {record.data["variant"] for record in own if "variant" in record.data}

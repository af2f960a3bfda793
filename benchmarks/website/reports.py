"""The reports that a site shows: committed records, and those of a user beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.report.cells import Cell, judge
from benchmarks.report.layout import TableLayout
from benchmarks.runs.codec import joint_digest
from benchmarks.runs.paths import TIERS
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import experiment_names, find_experiment
from metricopt.errors import DataError

MAIN_TIER = "local"
"""Tier whose pages have the plain name of their experiment."""
Place = tuple[str, str, str]
"""Names of a block, a row and a column."""


@dataclass(frozen=True)
class Report:
    """One experiment at one tier.

    Attributes:
        layout: of the experiment, fitted to the records.
        tier: of the records.
        records: the committed ones, sorted; empty if there are none.
        own: those of a user.
        figures: folder of the figures of the committed ones.
    """

    layout: TableLayout
    tier: str
    records: Sequence[RunRecord]
    own: Sequence[RunRecord] = ()
    figures: Path = Path()

    @property
    def name(self) -> str:
        """Name of its page and of its files."""
        name = self.layout.experiment
        return name if self.tier == MAIN_TIER else f"{name}-{self.tier}"

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The judged cells of the committed records."""
        return judge(self.layout, self.records) if self.records else ()

    @cached_property
    def own_cells(self) -> dict[Place, Cell]:
        """The judged cells of the records of a user, by their places."""
        cells = judge(self.layout, self.own) if self.own else ()
        return {place_of(cell): cell for cell in cells}

    @property
    def shown(self) -> Sequence[RunRecord]:
        """The records its page is about: the committed ones, or a user's alone."""
        return self.records or self.own

    @property
    def data(self) -> str:
        """The data sets and the number of replicates of the records shown."""
        names = {r.data["variant"] for r in self.shown if "variant" in r.data}
        replicates = len({record.spec.replicate for record in self.shown})
        many = "1 replicate" if replicates == 1 else f"{replicates} replicates"
        return ", ".join([*sorted(names), many])

    @property
    def cells_shown(self) -> tuple[Cell, ...]:
        """The judged cells of the records its page is about."""
        return self.cells or tuple(self.own_cells.values())

    @cached_property
    def by_place(self) -> dict[Place, Cell]:
        """The judged cells of the committed records, by their places."""
        return {place_of(cell): cell for cell in self.cells}


def place_of(cell: Cell) -> Place:
    """Return the names of the block, row and column of a cell."""
    return cell.block.name, cell.row.name, cell.column.name


def load(results: Path, own: Path | None = None) -> list[Report]:
    """Return all reports there are, experiment by experiment.

    Args:
        results: folder of the committed reports.
        own: folder of the reports of a user; None to leave them out.

    Raises:
        DataError: if there is no report, or records are damaged.
    """
    found = list(_reports(results, own))
    if not found:
        raise DataError(f"expected reports in {results}, and there is none")
    return found


def digest_of(reports: Sequence[Report]) -> str:
    """Return one short digest of all records, time and machine included."""
    return joint_digest(
        record.digest for report in reports for record in (*report.records, *report.own)
    )


def _reports(results: Path, own: Path | None) -> Iterator[Report]:
    for name in experiment_names():
        for tier in (MAIN_TIER, *(tier for tier in TIERS if tier != MAIN_TIER)):
            records = _records(results, name, tier)
            of_user = _records(own, name, tier) if own else []
            if records or of_user:
                layout = find_experiment(name).layout(tier).fitted(records or of_user)
                yield Report(layout, tier, records, of_user, results / name / tier)


def _records(folder: Path, name: str, tier: str) -> list[RunRecord]:
    path = folder / name / tier / "records.jsonl"
    return read_jsonl(path) if path.is_file() else []

"""Tables of ReLoss on structured problems, and MetricOpt on top of its networks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchmarks.problems.structured.tiers import VARIANTS, Structured
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows import network_methods
from benchmarks.rows.contract import Row
from benchmarks.tables.table import Place, Table, table

ASKS = "is not trained here: this table trains a few named methods only"
BLOCKS = (Block("natural", "natural sampling"),)
TRAINING = (
    "The last training of every method takes as many steps as that with the usual "
    "loss, from the same weights."
)
NOTES = (
    "The surrogate is learned on outputs that were recorded in a training with the "
    "usual loss, at all stages of it, with their targets; groups of them are ranked "
    "by the metric. It is divided by its mean slope on held-out groups.",
    "The last state of a network is kept, not the best: the one-cycle rate ends at 0.",
    "`queries` are all that a network's training made, and those of MetricOpt on top.",
    "Networks are trained before the runs and shared by the runs on top of them.",
)
ROW_NOTES = {
    "reloss": "trains twice: first with the usual loss, to record outputs",
    "reloss-regression": "the surrogate learns values instead of ranks",
}


@dataclass(frozen=True)
class StructuredTable:
    """A table whose rows are networks that the usual loss and forms of ReLoss train.

    Attributes:
        experiment: name of the table.
        modality: name of the modality.
        title: one line.
        captions: what is shown, by tier.
        convention: what the metrics compare.
        paper_table: what it is held beside.
        paper_data: name of the paper's data, by which its numbers are found; by data
            set where a table has several.
        not_comparable: why numbers below tier paper are not comparable.
        anchored: what the anchored form is.
        notes: what a reader is told below.
        headings: of columns by data set, where there are several.
    """

    experiment: str
    modality: str
    title: str
    captions: Mapping[str, str] = field(hash=False)
    convention: str
    paper_table: str
    paper_data: str | Mapping[str, str] = field(hash=False)
    not_comparable: str
    anchored: str
    notes: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __call__(self, tier: str) -> Table:
        """Return the table at a tier."""
        problems = Structured.every(self.modality, tier)
        problem = problems[0]
        modality, size = problem.modality, problem.size
        first, *others = modality.metrics
        rows = self._rows(modality.usual)
        places = [
            Place(
                "natural",
                one,
                first,
                one.name,
                rows=rows,
                asks=ASKS,
                also=tuple(others),
            )
            for one in problems
        ]
        return table(
            places,
            experiment=self.experiment,
            title=self.title,
            caption=(
                f"{self.captions[tier]}. MetricOpt: FiLM on the last normalisation, "
                f"d = {problem.phi_size}, T = {size.steps}, K = {size.observations}, "
                f"{size.tasks} tasks."
            ),
            convention=f"{self.convention} {TRAINING}",
            blocks=BLOCKS,
            columns=tuple(
                column for one in problems for column in self._columns(one, tier)
            ),
            paper_table=self.paper_table,
            untouched_row=modality.usual,
            query_budgets=(),
            notes=(*self.notes, *NOTES),
        )

    def _rows(self, usual: str) -> tuple[Row, ...]:
        names = (usual, *VARIANTS)
        notes = {**ROW_NOTES, "reloss-anchored": self.anchored}
        rows = [
            replace(network_methods.trained(name, base=usual), note=notes.get(name, ""))
            for name in names
        ]
        for name in (usual, "reloss"):
            rows += network_methods.on_top(name)
        return tuple(rows)

    def _columns(self, problem: Structured, tier: str) -> list[Column]:
        modality, paper = problem.modality, self.paper_data
        data = paper if isinstance(paper, str) else paper.get(problem.name, "")
        return [
            Column(
                f"{problem.name}/{unit.label}",
                self.headings.get(problem.name, label),
                unit,
                runs=problem.name,
                paper_column=f"{data}/{unit.label}" if data else None,
                not_comparable="" if tier == "paper" else self.not_comparable,
            )
            for unit, label in zip(modality.metrics, modality.labels, strict=True)
        ]

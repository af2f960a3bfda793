"""The table and the figure that everything built here appears in."""

from dataclasses import dataclass, replace

from benchmarks.problems.images.tiers import (
    DIGITS,
    ImageSize,
    TrainedNetwork,
)
from benchmarks.problems.problem import Problem
from benchmarks.problems.tabular.tiers import TabularSize
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows import controls
from benchmarks.rows.contract import Row, Run
from benchmarks.rows.controls import method
from benchmarks.rows.metricopt import METRICOPT
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm, Unit
from benchmarks.tables.table import Place, Table, experiment_of, table
from tests.extensions.retrieval_pipeline import RetrievalSettings

NAME, BLOCK = "extensions", "natural"
QUERIES, STEPS, POINTS = 70, 10, 40
SIZE = TabularSize(
    replicates=2,
    meta_tests=2,
    steps=STEPS,
    tasks=10,
    queries=QUERIES,
    metricopt_queries=QUERIES,
)

RECALL, RANK_3, RANK_10 = (
    Unit("recall-at-1"),
    Unit("first-hit-rank", {"k": 3}),
    Unit("first-hit-rank", {"k": 10}),
)
ERROR = Unit("mcr")
TO_RECALL, TO_RANK, ON_IMAGES = "unseen/recall", "unseen/rank", "digits/mcr"


@dataclass(frozen=True, kw_only=True)
class UnseenDigits(Problem):
    """Digits that no class of training shows; see `RetrievalPipeline` here."""

    name: str = "unseen"
    size: TabularSize = SIZE
    deviation: float | None = 0.3

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it."""
        return Unit("unseen-digits", encode(RetrievalSettings()))


def _own(name: str, label: str, run: Run) -> Row:
    return Row(name, label, run=lambda problem, metric: run, base=("cross-entropy",))


def _shown(row: Row) -> Row:
    base = () if row.name == "cross-entropy" else ("cross-entropy",)
    return replace(row, base=base, sees="", compared=True)


# The adapter of the rows before has frozen theta, from which the last one goes on.
SMOOTH = Arm(
    "network", "metric-selected", {"smoothing": 0.1}, {"epochs": 2}, from_theta=True
)
RIDGE = _own("ridge", "ridge descent", Run(method("ridge-descent"), QUERIES, 2))
ROWS = (
    *map(_shown, (controls.CROSS_ENTROPY, controls.LOSS_ONLY_ROW, controls.DENSE)),
    *map(_shown, controls.SEARCHES),
    _shown(METRICOPT.running(diagnose=False)),
    RIDGE,
    _own(
        "ridge-short",
        "ridge descent, short",
        Run(method("ridge-descent", steps=9, length=1.0), QUERIES, 2),
    ),
    _own("stretch", "stretched embedding", Run(Arm("stretch-embedding"), QUERIES)),
    _own(
        "selected",
        "network, epoch by metric",
        Run(Arm("network", "metric-selected", schedule={"epochs": 4})),
    ),
    _own("oracle", "oracle: CMA-ES on test", Run(Arm("oracle", "cma-es"), 30)),
)
FEW = tuple(row for row in ROWS if row.name in ("cross-entropy", "random-search"))


def extensions(tier: str) -> Table:
    """Return the table, the same at every tier."""
    unseen = UnseenDigits()
    images = DIGITS.at(
        "smoke",
        size=SIZE,
        deviation=0.3,
        network=TrainedNetwork("digit-net"),
        finetuning=ImageSize(examples=200, batch_size=32),
    )
    smooth = _own("selected", "network, epoch by metric", Run(SMOOTH))
    return table(
        [
            Place(BLOCK, unseen, RECALL, TO_RECALL, rows=ROWS, also=(RANK_3, RANK_10)),
            Place(BLOCK, unseen, RANK_10, TO_RANK, rows=(*FEW, RIDGE)),
            Place(BLOCK, images, ERROR, ON_IMAGES, rows=(*FEW, smooth)),
        ],
        title="Extensions",
        caption="All of it is built in tests/extensions.",
        convention="Neighbours are by cosine.",
        blocks=(Block(BLOCK, "natural mini-batches"),),
        columns=(
            Column(TO_RECALL, "unseen digits, recall at 1", RECALL),
            Column("rank-3", "unseen digits, rank of 3", RANK_3, runs=TO_RECALL),
            Column("rank-10", "unseen digits, rank of 10", RANK_10, runs=TO_RECALL),
            Column(TO_RANK, "unseen digits, towards rank of 10", RANK_10),
            Column(ON_IMAGES, "digits MCR", ERROR),
        ),
        loss_only_row="loss-only",
        query_budgets=(10, 30, QUERIES),
    )


EXTENSIONS = experiment_of(NAME, extensions)

"""The table and the figure that everything built here appears in."""

from benchmarks.experiments.registry import Experiment, check_tier
from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared.plans import Part, Plan, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import DIGITS
from benchmarks.problems.images.tiers import (
    ImageSize,
    TrainedNetwork,
    image_pipeline,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, Row, TableLayout
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm, RunSpec, Unit
from tests.extensions.retrieval_pipeline import RetrievalSettings

NAME, BLOCK = "extensions", "natural"
QUERIES, STEPS, POINTS = 70, 10, 40
SIZE = arms.Size(replicates=2, meta_tests=2, search_tests=1)

RECALL, RANK_3, RANK_10 = (
    Unit("recall-at-1"),
    Unit("first-hit-rank", {"k": 3}),
    Unit("first-hit-rank", {"k": 10}),
)
ERROR = Unit("mcr")
TO_RECALL, TO_RANK, ON_IMAGES = "unseen/recall", "unseen/rank", "digits/mcr"

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)"),
    Row("loss-only", "CE fine-tune, last step", "cross-entropy"),
    Row("loss-only-dense", "CE fine-tune, dense eval", "cross-entropy"),
    Row("random-search", "random search", "cross-entropy"),
    Row("cma-es", "CMA-ES", "cross-entropy"),
    Row("guided-cma", "guided CMA-ES", "cross-entropy"),
    Row("metricopt", "MetricOpt (SGD)", "cross-entropy"),
    Row("ridge", "ridge descent", "cross-entropy"),
    Row("ridge-short", "ridge descent, short", "cross-entropy"),
    Row("stretch", "stretched embedding", "cross-entropy"),
    Row("selected", "network, epoch by metric", "cross-entropy"),
    Row("oracle", "oracle: CMA-ES on test"),
)


def plans() -> dict[str, Plan]:
    """Return how the rows on unseen digits are filled."""
    searches = arms.controls(SIZE, steps=STEPS, queries=QUERIES, deviation=0.3)
    return searches | {
        "metricopt": Plan(
            arms.method("metricopt", recipe={"tasks": 10}), QUERIES, SIZE.meta_tests
        ),
        "ridge": Plan(arms.method("ridge-descent"), QUERIES, SIZE.meta_tests),
        "ridge-short": Plan(
            arms.method("ridge-descent", steps=9, length=1.0), QUERIES, SIZE.meta_tests
        ),
        "stretch": Plan(Arm("stretch-embedding"), QUERIES),
        "selected": Plan(Arm("network", "metric-selected", schedule={"epochs": 4})),
        "oracle": Plan(Arm("oracle", "cma-es"), 30),
    }


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs, the same at every tier."""
    check_tier(tier, replicates)
    unseen = Unit("unseen-digits", encode(RetrievalSettings()))
    images = image_pipeline(
        "smoke",
        DIGITS.here(offline),
        TrainedNetwork("digit-net"),
        size=ImageSize(examples=200, batch_size=32, steps=STEPS),
    )
    all_plans = plans()
    few = {row: all_plans[row] for row in ("cross-entropy", "random-search", "ridge")}
    # The adapter of the rows before has frozen theta, from which this one goes on.
    smooth = Arm(
        "network", "metric-selected", {"smoothing": 0.1}, {"epochs": 2}, from_theta=True
    )
    on_images = {
        "cross-entropy": arms.untouched(),
        "random-search": all_plans["random-search"],
        "selected": Plan(smooth),
    }
    parts = [
        Part(
            BLOCK,
            TO_RECALL,
            RECALL,
            STEPS,
            on_pipeline(unseen, all_plans),
            also=(RANK_3, RANK_10),
        ),
        Part(BLOCK, TO_RANK, RANK_10, STEPS, on_pipeline(unseen, few)),
        Part(BLOCK, ON_IMAGES, ERROR, STEPS, on_pipeline(images, on_images)),
    ]
    return table_specs(NAME, tier, parts, replicates=replicates or SIZE.replicates)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like."""
    return TableLayout(
        experiment=NAME,
        title="Extensions",
        caption="All of it is built in tests/extensions.",
        convention="Neighbours are by cosine.",
        blocks=(Block(BLOCK, "natural mini-batches"),),
        rows=ROWS,
        columns=(
            Column(TO_RECALL, "unseen digits, recall at 1", RECALL),
            Column("rank-3", "unseen digits, rank of 3", RANK_3, runs=TO_RECALL),
            Column("rank-10", "unseen digits, rank of 10", RANK_10, runs=TO_RECALL),
            Column(TO_RANK, "unseen digits, towards rank of 10", RANK_10),
            Column(ON_IMAGES, "digits MCR", ERROR),
        ),
        loss_only_row="loss-only",
        query_budgets=(10, 30, QUERIES),
        network_of=network_of,
    )


EXTENSIONS = Experiment(NAME, layout, specs)

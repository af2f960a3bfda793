"""Table 5 of MetricOpt: Recall@k of image retrieval on Stanford Online Products.

Source: Huang et al., CVPR 2021, Table 5 and Sec. 4.4. One value function for the mean
of Recall@k serves all columns, as in the paper. The control arms, MetricOpt on outputs,
the oracle and the arms at equal queries are ours.
"""

from benchmarks.data.listed.registry import find_listed
from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared import moved_by_film
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.problems.retrieval.theta import fetch_base
from benchmarks.problems.retrieval.tiers import (
    LABELS,
    LOSSES,
    PROBLEMS,
    SIZES,
    backbone,
    network_of,
    retrieval_pipeline,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.spec import RunSpec, Unit

METRIC, ALSO = "mean-recall", "map@r"
NOT_SOP = "other data and another network than the paper's"

BLOCKS = tuple(
    Block(name, f"networks trained with {label}", paper_part=name)
    for name, label in LOSSES.items()
)


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    if offline is False:
        # Downloads what is missing, before any run.
        find_listed(PROBLEMS[tier].dataset).load()
        fetch_base(backbone(tier, "fastap"))
    size = SIZES[tier]
    also = tuple(Unit(_metric(k)) for k in size.ranks)
    parts = [
        Part(
            loss,
            PROBLEMS[tier].dataset,
            METRIC,
            size.steps,
            on_pipeline(retrieval_pipeline(tier, loss), moved_by_film.plans(size)),
            (*also, Unit(ALSO)),
        )
        for loss in LOSSES
    ]
    return table_specs("table5", tier, parts, replicates=replicates or size.replicates)


def columns(tier: str) -> tuple[Column, ...]:
    """Return the columns of a tier: metrics of the same runs."""
    dataset = PROBLEMS[tier].dataset
    shown = {_metric(k): f"R@{k}" for k in SIZES[tier].ranks}
    shown |= {METRIC: "mean R@k", ALSO: "mAP@R"}
    return tuple(
        Column(
            f"{dataset}/{metric}",
            label,
            Unit(metric),
            runs=dataset,
            paper_column=f"sop/{metric}",
            not_comparable="" if tier == "paper" else NOT_SOP,
        )
        for metric, label in shown.items()
    )


def layout(tier: str) -> TableLayout:
    """Return what Table 5 looks like at a tier."""
    size = SIZES[tier]
    return moved_by_film.table(
        size,
        experiment="table5",
        title="Table 5 of MetricOpt (CVPR 2021): Recall@k of image retrieval",
        caption=(
            f"{LABELS[tier]}. FiLM on the last stage, d = 128, T = {size.steps}, "
            f"K = {size.observations}, {size.tasks} tasks. Queries of meta-training "
            "count."
        ),
        convention=(
            "Every image of the test is a query among all others; no class of the "
            "test is one of training or observe."
        ),
        blocks=BLOCKS,
        columns=columns(tier),
        paper_table="Table 5",
        network_of=network_of,
        notes=NOTES,
    )


NOTES = (
    "All runs work towards the mean of Recall@k, k = 1, 10, 100 and 1,000, as far as "
    "k is less than the gallery; every column shows another metric of the same runs.",
    "The paper does not say on which images recall is queried. Here it is a share of "
    "the training classes that training does not see, drawn anew for every "
    "replicate; the test classes are the same for all.",
    "Fine-tuning sees the training images without augmentation, so everything before "
    "FiLM is computed only once.",
    "An embedding has no class that an output offset could favour: there are no "
    "offsets in this table.",
)


def _metric(k: int) -> str:
    return f"recall@{k}"


EXPERIMENTS.register("table5")(Experiment("table5", layout, specs))

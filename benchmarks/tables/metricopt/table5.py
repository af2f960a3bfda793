"""Table 5 of MetricOpt: Recall@k of image retrieval on Stanford Online Products.

Source: Huang et al., CVPR 2021, Table 5 and Sec. 4.4. One value function for the mean
of Recall@k serves all columns, as in the paper. The control arms, MetricOpt on outputs,
the oracle and the arms at equal queries are ours.
"""

from benchmarks.problems.retrieval import tiers
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import (
    BASE_LOSS_ROWS,
    UNTOUCHED,
    brief_place,
    finetuning_fields,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Table, experiment_of, table

METRIC, ALSO = Unit("mean-recall"), Unit("map@r")
NOT_SOP = "other data and another network than the paper's"

BLOCKS = tuple(
    Block(name, f"networks trained with {label}", paper_part=name)
    for name, label in tiers.LOSSES.items()
)


def table5(tier: str) -> Table:
    """Return Table 5 at a tier."""
    size, dataset = tiers.SIZES[tier], tiers.PROBLEMS[tier].dataset
    recalls = {Unit(f"recall@{k}"): f"R@{k}" for k in size.ranks}
    return table(
        [
            brief_place(
                loss,
                tiers.Retrieval.at(tier, loss),
                METRIC,
                also=(*recalls, ALSO),
                own=BASE_LOSS_ROWS,
            )
            for loss in tiers.LOSSES
        ],
        title="Table 5 of MetricOpt (CVPR 2021): Recall@k of image retrieval",
        caption=(
            f"{tiers.LABELS[tier]}. FiLM on the last stage, d = 128, T = {size.steps}, "
            f"K = {size.observations}, {size.tasks} tasks. Queries of meta-training "
            "count."
        ),
        convention=(
            "Every image of the test is a query among all others; no class of the "
            "test is one of training or observe."
        ),
        blocks=BLOCKS,
        columns=tuple(
            Column(
                f"{dataset}/{metric.label}",
                label,
                metric,
                runs=dataset,
                paper_column=f"sop/{metric.label}",
                not_comparable="" if tier == "paper" else NOT_SOP,
            )
            for metric, label in {**recalls, METRIC: "mean R@k", ALSO: "mAP@R"}.items()
        ),
        paper_table="Table 5",
        notes=NOTES,
        **finetuning_fields(size, 15, untouched=UNTOUCHED.name),
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
    "98 classes to train and observe (20 of them observed), 62 to test. MetricOpt on "
    "outputs predicts the metric after 9 queries and finds no evidence of a gain: "
    "every search returns the network as it was.",
)

EXPERIMENTS.register("table5")(experiment_of("table5", table5))

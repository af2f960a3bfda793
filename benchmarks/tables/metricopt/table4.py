"""Table 4 of MetricOpt: top-1 and top-5 accuracy on ImageNet, and transfer to it.

Source: Huang et al., CVPR 2021, Table 4 and Sec. 4.3. All runs work towards the error
rate. The control arms, MetricOpt on outputs, the oracle and the arms at equal queries
are ours.
"""

from dataclasses import replace

from benchmarks.problems.photographs import tiers
from benchmarks.problems.problem import STEP_QUERIES, Problem
from benchmarks.report.columns import Column
from benchmarks.rows.contract import LOSS_ONLY, Row, Run
from benchmarks.rows.controls import finetuned
from benchmarks.rows.learned_optimizers import LEARNED
from benchmarks.rows.metricopt import METRICOPT, metricopt
from benchmarks.rows.photograph_networks import RMSPROP, powersign
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import NATURAL, brief_place, finetuning_fields
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("mcr")
SHOWN = (Unit("top-1"), Unit("top-5"))
NOT_IMAGENET = "other data and another network than the paper's"
TRANSFER_NOTE = (
    "the queries that its value function was learned with were made on that network, "
    "and are not counted here"
)


def _transferred(tier: str, source: str, words: str, paper_row: str) -> Row:
    """Return MetricOpt with the value function of another network."""
    return finetuned(
        f"metricopt-{source}",
        f"MetricOpt (SGD), f of {words}",
        family="metricopt",
        run=metricopt(diagnose=False),
        learns_on=tiers.problem_at(tier, source),
        base=(LOSS_ONLY,),
        paper={"Table 4": paper_row},
        note=TRANSFER_NOTE,
        compared=True,
    )


def _second_run(problem: Problem, metric: Unit) -> Run:
    own = METRICOPT.run(problem, metric)
    return replace(
        own,
        arm=replace(own.arm, kind="second-run", schedule=tiers.SECOND),
        # It chooses its step again.
        queries=own.queries + STEP_QUERIES,
        meta_tests=1,
        diagnose=False,
    )


SECOND_RUN = Row(
    "second-run",
    "MetricOpt + 2nd run",
    "metricopt",
    run=_second_run,
    base=(LOSS_ONLY,),
    paper={"Table 4": "metricopt-second"},
    note="theta is trained for another epoch with the tuned phi in it, then phi is "
    "fine-tuned again from there with the same value function",
    sees="loss gradients",
    compared=False,
)


def column(tier: str, problem: tiers.ImageNet, metric: Unit) -> Column:
    """Return the column of an accuracy."""
    return Column(
        f"{problem.name}/{metric.label}",
        metric.label,
        metric,
        runs=problem.name,
        paper_column=f"imagenet/{metric.label}",
        not_comparable="" if tier == "paper" else NOT_IMAGENET,
    )


def _place(tier: str, problem: tiers.ImageNet) -> Place:
    own = (
        RMSPROP,
        powersign(tier),
        _transferred(tier, tiers.SMALLER, "ResNet-18", "metricopt-resnet18"),
        _transferred(tier, tiers.ELSEWHERE, "CIFAR-10", "metricopt-cifar10"),
    )
    return brief_place(
        "natural", problem, METRIC, also=SHOWN, own=own, last=(LEARNED, SECOND_RUN)
    )


def table4(tier: str) -> Table:
    """Return Table 4 at a tier."""
    size, problem = tiers.SIZES[tier], tiers.problem_at(tier, tiers.OWN)
    return table(
        [_place(tier, problem)],
        title="Table 4 of MetricOpt (CVPR 2021): accuracy on ImageNet",
        caption=(
            f"{tiers.CAPTIONS[tier]}. FiLM on the last feature map, d = 256, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks. Queries "
            "of meta-training count."
        ),
        convention="All runs work towards the error rate, 1 - top-1.",
        blocks=NATURAL,
        columns=tuple(column(tier, problem, metric) for metric in SHOWN),
        paper_table="Table 4",
        **finetuning_fields(size, 15, untouched=RMSPROP.name),
        notes=NOTES,
    )


NOTES = (
    "The paper does not say how a value function of phi can be used on another "
    "network. Here all networks have one generator of FiLM by replicate: the first "
    "channels of their last feature maps take the same rows of it. Nothing makes the "
    "channels of two networks mean the same.",
    "The paper does not say on which images the error is queried. Here they are "
    "training images that training does not see, drawn anew for every replicate; the "
    "test images are the same for all.",
    "Fine-tuning sees training images without augmentation, so everything before FiLM "
    "is computed only once.",
    "Rows that see outputs and labels search FiLM with an offset for every output.",
    "MetricOpt (learned) stands in the paper's Table S1, and not in its Table 4.",
    "800 photographs to train on, 200 to observe, 250 to test: one test image is "
    ".004, replicates differ by .02, those of MetricOpt with the value function of "
    "CIFAR-10 by .08.",
    "On observe CMA-ES gets about as far as the oracle on test, and that does not "
    "carry over.",
)

EXPERIMENTS.register("table4")(experiment_of("table4", table4))

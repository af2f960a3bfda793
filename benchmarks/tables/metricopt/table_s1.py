"""Table S1 of MetricOpt: optimizers of phi, learned ones among them.

Source: Huang et al., CVPR 2021, supplement B. Its table has NASNet-A on ImageNet alone,
so nothing here is beside a published number.
"""

from dataclasses import replace

from benchmarks.problems.images import tiers as images
from benchmarks.problems.problem import Problem
from benchmarks.problems.tabular import tiers as tabular
from benchmarks.report.layout import Block, OverTasks
from benchmarks.rows import controls, learned_optimizers, metricopt, on_outputs
from benchmarks.rows.contract import Row
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of, finetuning_fields
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

SIZES = {
    "paper": {"replicates": 10},
    "local": {"replicates": 3},
    "smoke": {"replicates": 1, "tasks": 8},
}
"""What the binary problem has of its own by tier: every replicate has an optimizer."""
ROWS: tuple[Row, ...] = (
    controls.CROSS_ENTROPY,
    replace(controls.LOSS_ONLY_ROW, label="SGD on the loss"),
    learned_optimizers.MOMENTUM,
    learned_optimizers.ADAM,
    learned_optimizers.POWERSIGN,
    controls.DENSE,
    *learned_optimizers.RIVALS,
    metricopt.METRICOPT,
    metricopt.ADAM,
    replace(learned_optimizers.LEARNED, base=(metricopt.METRICOPT.name,)),
)
OTHER_TRAINING = (
    learned_optimizers.TRUE_METRIC,
    learned_optimizers.STATISTICS,
    learned_optimizers.LOSS_MLP,
    *learned_optimizers.VARIANTS,
)
"""Rows of the binary problem alone."""
ON_OUTPUTS = (on_outputs.OURS,)
ASKS = "is not one of the optimizers compared here"
BLOCKS = (
    Block("balanced", "binary, class-balanced mini-batches"),
    Block("natural", "images, natural sampling"),
)


def table_s1(tier: str) -> Table:
    """Return the table at a tier."""
    binary, others = _binary(tier), _images(tier)
    size = others[0][0].size
    places = [
        _place("balanced", *binary, (*ROWS, *OTHER_TRAINING, *ON_OUTPUTS)),
        *(_place("natural", *each, (*ROWS, *ON_OUTPUTS)) for each in others),
    ]
    return table(
        places,
        title="Table S1 of MetricOpt (CVPR 2021, supplement): optimizers of phi",
        caption=(
            f"{binary[0].name}: MLP with d = 16 input biases, T = {tabular.STEPS}. "
            f"Images: FiLM on the last batch norm, T = {size.steps}. All queries of "
            "meta-training are charged."
        ),
        convention=tabular.convention([binary[0]]),
        blocks=BLOCKS,
        columns=tuple(
            column_of(problem, metric, name=place.name)
            for (problem, metric), place in zip([binary, *others], places, strict=True)
        ),
        mixed=True,
        over_tasks=OverTasks(
            tuple(row.name for row in (learned_optimizers.LEARNED, *OTHER_TRAINING)),
            (metricopt.METRICOPT.name, metricopt.ADAM.name),
            learners=False,
        ),
        notes=NOTES,
        **finetuning_fields(size)
        | {"rival_row": on_outputs.OURS.name, "query_budgets": ()},
    )


def _binary(tier: str) -> tuple[tabular.Binary, Unit]:
    problem = (tabular.DIGIT if tier == "smoke" else tabular.A9A).at(tier)
    return replace(problem, size=replace(problem.size, **SIZES[tier])), Unit("f1")


def _images(tier: str) -> list[tuple[Problem, Unit]]:
    small = "digit-net" if tier == "smoke" else "small"
    ranked = images.cifar10(tier, network=images.TrainedNetwork(small))
    found = [(replace(ranked, name=f"{small}"), Unit("aucpr-macro-logits"))]
    if tier == "smoke":
        return found
    return [*found, (images.cifar10(tier), Unit("mcr"))]


def _place(block: str, problem: Problem, metric: Unit, rows: tuple[Row, ...]) -> Place:
    return Place(block, problem, metric, rows=rows, asks=ASKS)


NOTES = (
    "The paper's Table S1 is another experiment: NASNet-A on all of ImageNet, with an "
    "accuracy of 73.5 % for RMSProp on the loss, 74.9 % for MetricOpt (SGD) and 75.0 % "
    "for MetricOpt (learned).",
    "SGD, momentum, Adam and PowerSign use whichever of seven learning rates gave the "
    "lowest training loss. A learned optimizer has none to choose. Rates of "
    "meta-training are the same for all problems, while the paper tunes those of LSTM "
    "and MLP.",
    "On images one network has three learned optimizers of each kind. On tables each "
    "of three replicates has a network with one. Task by task, 10 fine-tunings for "
    "each optimizer on tables count, and on images 10 means over three optimizers.",
    "LSTM, MLP and MetricOpt's optimizer on the loss alone see no metric, and are "
    "learned without a query. MetricOpt (learned) is Algorithm S1: it sees the metric "
    "as last observed, at 5 % of the steps and at three at least.",
    "The true metric instead of the value function f, and a value function of "
    "statistics instead, are for small d alone: meta-training evaluates the metric of "
    "every step of every run, or statistics of all outputs there, and on images that "
    "would take days. MetricOpt's optimizer on the loss alone is run on tables only, "
    "beside them.",
    "Meta-training by evolution strategies, of the LSTM by back-propagation; the paper "
    "merges both. Its noise of the weights has a deviation of .1. Here it is .03 where "
    "the metric is seen, and .01 where it is not; the LSTM has none. Inputs of time "
    "and of the gradient's length are ours.",
    "The paper makes about 5,000 iterations on images. At tier local MetricOpt "
    "(learned) makes 300 on tables and 120 on images, of four tasks each, which are as "
    "many tasks as MetricOpt's value function learns from. On the loss alone LSTM, MLP "
    "and MetricOpt's optimizer make 800, 400 and 400 on tables, LSTM and MLP 120 and "
    "60 on images.",
    "On tables alone, MetricOpt (learned) was also learned with a noise of .1 and of "
    ".01, and on fine-tunings of T / 2 and of 2 T steps. With 2 T it makes 249 "
    "iterations at tier local, and more queries, as it observes longer runs more "
    "often. All are then used for T steps, in which that of T / 2 sees the metric five "
    "times, that of 2 T twice, and the others three times.",
    "Signs of MetricOpt (learned) hold it against MetricOpt (SGD), those of its "
    "changes against MetricOpt (learned). `Against another method` compares rows with "
    "MetricOpt on outputs. Task by task rows are held against MetricOpt with SGD and "
    "with Adam, over the same starts and mini-batches.",
    "Optimizers that see the loss alone, and the one with statistics, keep the weights "
    "that are best on held-out runs; those of the LSTM are compared every 1,000 "
    "iterations, which tier local does not reach. "
    "The others keep the last weights: validation would take queries.",
)

EXPERIMENTS.register("tableS1")(experiment_of("tableS1", table_s1))

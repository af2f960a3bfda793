"""Figure 4 of MetricOpt: optimizers of the loss, and MetricOpt with several.

Rates of SGD and Adam are tuned on the training loss. Source: Huang et al., CVPR 2021,
Fig. 4.
"""

from dataclasses import replace

from benchmarks.problems.images import tiers
from benchmarks.rows import learned_optimizers
from benchmarks.rows.controls import LOSS_ONLY_ROW
from benchmarks.rows.metricopt import ADAM, METRICOPT
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import LABELS, NATURAL, column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("aucpr-macro-logits")


ROWS = (
    replace(LOSS_ONLY_ROW, label="SGD on the loss"),
    replace(learned_optimizers.ADAM, base=()),
    *learned_optimizers.RIVALS,
    METRICOPT,
    replace(ADAM, base=("loss-only-adam",)),
    learned_optimizers.LEARNED,
)


def fig4(tier: str) -> Table:
    """Return the figure's table at a tier."""
    size, name = tiers.SIZES[tier], "digit-net" if tier == "smoke" else "small"
    problem = tiers.cifar10(tier, network=tiers.TrainedNetwork(name))
    column = f"{name}/{METRIC.label}"
    asks = "is not one of the optimizers compared here"
    return table(
        [Place("natural", problem, METRIC, column, rows=ROWS, asks=asks)],
        title="Figure 4: optimizers with and without the metric",
        caption=(
            "AUCPR on CIFAR-10 with the small network of Table 2, FiLM on its last "
            f"batch norm. T = {size.steps}, K = {size.observations}, {size.tasks} "
            "tasks. Queries of meta-training are charged."
        ),
        convention=tiers.CONVENTION,
        blocks=NATURAL,
        columns=(
            column_of(problem, METRIC, f"{name} {LABELS[METRIC.label]}", name=column),
        ),
        query_budgets=(),
        notes=(
            "Images are ranked by raw outputs, for which cross-entropy leaves a gain "
            "possible (see Table 2). The paper does not say what its figure ranks by.",
            "The network has three learned optimizers of each kind, those of Table S1, "
            "whose notes say how they are meta-trained.",
        ),
    )


EXPERIMENTS.register("fig4")(experiment_of("fig4", fig4))

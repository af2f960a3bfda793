"""Figure 4 of MetricOpt: optimizers of the loss, and MetricOpt with either.

Rates of SGD and Adam are tuned on the training loss. Source: Huang et al., CVPR 2021,
Fig. 4. Its learned optimizers (LSTM, MLP) are not in the table.
"""

from dataclasses import replace

from benchmarks.problems.images import tiers
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import Run
from benchmarks.rows.controls import LOSS_ONLY_ROW, finetuned, method
from benchmarks.rows.metricopt import ADAM, METRICOPT
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import NATURAL, column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("aucpr-macro-logits")


def _adam_on_the_loss(problem: Problem, metric: Unit) -> Run:
    arm = method("loss-only", optimizer="adam")
    return Run(arm, meta_tests=problem.size.meta_tests)


ROWS = (
    replace(LOSS_ONLY_ROW, label="SGD on the loss"),
    finetuned("loss-only-adam", "Adam on the loss", run=_adam_on_the_loss),
    METRICOPT,
    replace(ADAM, base=("loss-only-adam",)),
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
            "tasks."
        ),
        convention=tiers.CONVENTION,
        blocks=NATURAL,
        columns=(
            column_of(problem, METRIC, f"{name} AUCPR, raw outputs", name=column),
        ),
        query_budgets=(),
        notes=(
            "Images are ranked by raw outputs, for which cross-entropy leaves a gain "
            "possible (see Table 2). The paper does not say what its figure ranks by.",
            "The paper's learned optimizers are missing here.",
        ),
    )


EXPERIMENTS.register("fig4")(experiment_of("fig4", fig4))

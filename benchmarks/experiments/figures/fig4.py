"""Figure 4 of MetricOpt: optimizers of the loss, and MetricOpt with either.

Rates of SGD and Adam are tuned on the training loss. Source: Huang et al., CVPR 2021,
Fig. 4. Its learned optimizers (LSTM, MLP) are not built yet.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.arms import loss_only
from benchmarks.experiments.shared.image_arms import metricopt
from benchmarks.experiments.shared.plans import Part, Plan, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS
from benchmarks.problems.images.tiers import (
    BLOCKS,
    CONVENTION,
    SIZES,
    ImageSize,
    TrainedNetwork,
    image_pipeline,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

METRIC = "aucpr-macro-logits"

ROWS = (
    finetuned("loss-only", "SGD on the loss"),
    finetuned("loss-only-adam", "Adam on the loss"),
    finetuned("metricopt", "MetricOpt (SGD)", "loss-only"),
    finetuned("metricopt-adam", "MetricOpt (Adam)", "loss-only-adam"),
)


def plans(size: ImageSize) -> dict[str, Plan]:
    """Return how rows are filled."""
    return {
        "loss-only": loss_only(size),
        "loss-only-adam": loss_only(size, optimizer="adam"),
        "metricopt": metricopt(size),
        "metricopt-adam": metricopt(size, optimizer="adam"),
    }


def network(tier: str) -> str:
    """Return the network of a tier."""
    return "digit-net" if tier == "smoke" else "small"


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    pipeline = image_pipeline(
        tier, problem.here(offline), TrainedNetwork(network(tier))
    )
    column, rows = f"{network(tier)}/{METRIC}", on_pipeline(pipeline, plans(size))
    part = Part("natural", column, METRIC, size.steps, rows)
    return table_specs("fig4", tier, [part], replicates=replicates or size.replicates)


def layout(tier: str) -> TableLayout:
    """Return what the figure's table looks like at a tier."""
    size, name = SIZES[tier], network(tier)
    problem = DIGITS if tier == "smoke" else CIFAR10
    column = Column(
        f"{name}/{METRIC}",
        f"{name} AUCPR, raw outputs",
        Unit(METRIC),
        test_per_train=problem.problem.test_per_train,
    )
    return TableLayout(
        experiment="fig4",
        title="Figure 4: optimizers with and without the metric",
        caption=(
            "AUCPR on CIFAR-10 with the small network of Table 2, FiLM on its last "
            f"batch norm. T = {size.steps}, K = {size.observations}, {size.tasks} "
            "tasks."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(column,),
        query_budgets=(),
        network_of=network_of,
        notes=(
            "Images are ranked by raw outputs, for which cross-entropy leaves a gain "
            "possible (see Table 2). The paper does not say what its figure ranks by.",
            "The paper's learned optimizers are not built yet.",
        ),
    )


EXPERIMENTS.register("fig4")(Experiment("fig4", layout, specs))

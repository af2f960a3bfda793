"""Figure 4 of MetricOpt: optimizers of the loss, and MetricOpt with either.

Rates of SGD and Adam are tuned on the training loss. Source: Huang et al., CVPR 2021,
Fig. 4. Its learned optimizers (LSTM, MLP) are not built yet.
"""

from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.image_arms import metricopt
from benchmarks.images import (
    BLOCKS,
    CONVENTION,
    SIZES,
    Backbone,
    Problem,
    Setting,
    Size,
    repeated,
)
from benchmarks.layout import META_TEST, Column, Row, TableLayout
from benchmarks.protocol import Arm, Place, method
from benchmarks.records import RunSpec
from benchmarks.tasks import resolve_variant

METRIC = "aucpr-macro-logits"

ROWS = (
    Row("loss-only", "SGD on the loss"),
    Row("loss-only-adam", "Adam on the loss"),
    Row("metricopt", "MetricOpt (SGD)", "loss-only"),
    Row("metricopt-adam", "MetricOpt (Adam)", "loss-only-adam"),
)


def arms(size: Size) -> dict[str, Arm]:
    """Return the arms by row."""
    tests = size.meta_tests
    return {
        "loss-only": Arm(*method("loss-only"), meta_tests=tests),
        "loss-only-adam": Arm(*method("loss-only", optimizer="adam"), meta_tests=tests),
        "metricopt": metricopt(size),
        "metricopt-adam": metricopt(size, optimizer="adam"),
    }


def network_of(tier: str) -> str:
    """Return the network of a tier."""
    return "digit-net" if tier == "smoke" else "small"


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, network = SIZES[tier], network_of(tier)
    problem = Problem("cifar10", "digits" if tier == "smoke" else "cifar10")
    variant = resolve_variant(problem.dataset, offline=offline)
    setting = Setting(f"{network}/{METRIC}", problem, variant, Backbone(network))
    found = []
    for row, arm in arms(size).items():
        place = Place("fig4", tier, "natural", row, METRIC, 0)
        found += repeated(place, setting, arm, replicates)
    return found


def layout(tier: str) -> TableLayout:
    """Return what the figure's table looks like at a tier."""
    size, network = SIZES[tier], network_of(tier)
    column = Column(
        f"{network}/{METRIC}",
        f"{network} AUCPR, raw outputs",
        METRIC,
        higher_is_better=True,
    )
    return TableLayout(
        experiment="fig4",
        title="Figure 4: optimizers with and without the metric",
        caption=(
            "AUCPR on CIFAR-10 with the small network of Table 2, FiLM on its last "
            f"batch norm; T = {size.steps}, K = {size.observations}, {size.tasks} tasks"
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(column,),
        query_budgets=(),
        unit=META_TEST,
        notes=(
            "Images are ranked by raw outputs, where cross-entropy leaves something to "
            "gain, see Table 2; the paper does not say what its figure ranks by.",
            "The paper's learned optimizers are not built yet.",
        ),
    )


EXPERIMENTS.register("fig4")(
    Experiment(
        "fig4", "CIFAR-10: SGD and Adam with and without the metric", layout, specs
    )
)

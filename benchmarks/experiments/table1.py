"""Table 1 of MetricOpt: misclassification rate on CIFAR-10 with ResNet-32.

Source: Huang et al., CVPR 2021, Table 1 and Sec. 4.1. The control arms, the oracles and
the arms at equal queries are ours.
"""

from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.image_arms import (
    CONTROL_ROWS,
    LONGER,
    METRICOPT_ROWS,
    RECIPE_NOTE,
    SEARCHES,
    SIZE_NOTE,
    cross_entropy_arms,
    dense,
    loss_only,
    metricopt,
    query_budgets,
    untouched,
)
from benchmarks.images import (
    BLOCKS,
    CONVENTION,
    SIZES,
    Backbone,
    Problem,
    Setting,
    Size,
    network_label,
    repeated,
)
from benchmarks.layout import META_TEST, Column, Row, TableLayout
from benchmarks.protocol import Arm, Place
from benchmarks.records import RunSpec
from benchmarks.tasks import resolve_variant

CIFAR10 = Problem("cifar10", "cifar10")
DIGITS = Problem("digits", "digits")
METRIC = "mcr"
WARM = ("longer", "blackbox")
"""Rows of networks that go on from the cross-entropy network."""

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)", paper_row="ce"),
    Row("large-margin", "large-margin softmax", "cross-entropy", "large-margin"),
    LONGER,
    Row(
        "blackbox",
        "black-box differentiation",
        "cross-entropy",
        "blackbox",
        note="goes on from the cross-entropy network, with the recall loss",
    ),
    *CONTROL_ROWS,
    *METRICOPT_ROWS,
    Row("large-margin-loss-only", "large-margin fine-tune, last step"),
    Row(
        "large-margin-dense",
        "large-margin fine-tune, dense eval",
        "large-margin-loss-only",
        rival_row="large-margin-dense",
    ),
    Row(
        "large-margin-metricopt",
        "MetricOpt (SGD) + large-margin",
        "large-margin-loss-only",
        "metricopt-sgd-large-margin",
        rival_row="large-margin-dense",
    ),
    Row(
        "large-margin-metricopt-adam",
        "MetricOpt (Adam) + large-margin",
        "large-margin-loss-only",
        rival_row="large-margin-dense",
    ),
)


def arms(size: Size) -> dict[str, tuple[str, Arm]]:
    """Return loss of theta and arm by row."""
    return cross_entropy_arms(size) | {
        "large-margin": ("large-margin", untouched()),
        "longer": ("cross-entropy", untouched()),
        "blackbox": ("blackbox-recall", untouched()),
        "large-margin-loss-only": ("large-margin", loss_only(size)),
        "large-margin-dense": ("large-margin", dense(size)),
        "large-margin-metricopt": ("large-margin", metricopt(size)),
        "large-margin-metricopt-adam": (
            "large-margin",
            metricopt(size, optimizer="adam"),
        ),
    }


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    network = "digit-net" if tier == "smoke" else "resnet32"
    variant = resolve_variant(problem.dataset, offline=offline)
    found = []
    for row, (loss, arm) in arms(size).items():
        backbone = Backbone(network, loss, warm=row in WARM)
        setting = Setting(f"{problem.name}/{METRIC}", problem, variant, backbone)
        place = Place("table1", tier, "natural", row, METRIC, 0)
        found += repeated(place, setting, arm, replicates)
    return found


def layout(tier: str) -> TableLayout:
    """Return what Table 1 looks like at a tier."""
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    column = Column(
        f"{problem.name}/{METRIC}",
        f"{problem.name} MCR",
        METRIC,
        paper_column=None if tier == "smoke" else "cifar10/mcr",
    )
    return TableLayout(
        experiment="table1",
        title="Table 1 of MetricOpt (CVPR 2021): misclassification rate on CIFAR-10",
        caption=(
            f"{network_label(tier)}, FiLM: a scale and a shift for every channel of "
            f"its last feature map. T = {size.steps}, K = {size.observations}, "
            f"{size.tasks} tasks. Queries of meta-training are charged."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(column,),
        paper_table="Table 1",
        loss_only_row="loss-only",
        query_budgets=query_budgets(size),
        query_arms=SEARCHES,
        unit=META_TEST,
        rival_row="loss-only-dense",
        notes=NOTES,
    )


NOTES = (
    "One network per loss, and one value function for all fine-tuning runs of a row. "
    "The spread is over those runs, as the paper's seems to be, not over networks, "
    "splits or value functions: it holds for this network alone. Nor is the test split "
    "drawn anew: on 10,000 images an error of .085 has a standard error of .0028.",
    "Tier local: short one-cycle schedules, of 40 epochs for cross-entropy, 24 for "
    "large-margin softmax (m = 4 alone) and 6 more for black-box differentiation; all "
    "in bfloat16.",
    SIZE_NOTE,
    "FiLM is the direct form at the last batch norm; the paper does not say where its "
    "d = 128 parameters enter. The literal row has the same adapter.",
    RECIPE_NOTE,
)

EXPERIMENTS.register("table1")(
    Experiment("table1", "CIFAR-10, ResNet-32: misclassification rate", layout, specs)
)

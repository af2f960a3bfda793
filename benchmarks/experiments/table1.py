"""Table 1 of MetricOpt: misclassification rate on CIFAR-10 with ResNet-32.

Source: Huang et al., CVPR 2021, Table 1 and Sec. 4.1. The control arms, the oracles and
the arms at equal queries are ours.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.arms import dense, loss_only, untouched
from benchmarks.experiments.shared.image_arms import (
    CONTROL_ROWS,
    LONGER,
    METRICOPT_ROWS,
    OFFSETS_NOTE,
    OUTPUT_ROWS,
    QUERY_ARMS,
    RECIPE_NOTE,
    SIZE_NOTE,
    cross_entropy_plans,
    image_row,
    metricopt,
    on_cross_entropy,
    output_plans,
    query_budgets,
)
from benchmarks.experiments.shared.methods_column import MethodsColumn
from benchmarks.experiments.shared.plans import Part, Plan, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS
from benchmarks.problems.images.tiers import (
    BLOCKS,
    CONVENTION,
    SIZES,
    ImageSize,
    TrainedNetwork,
    default_network,
    network_label,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

METRIC = "mcr"
WARM = ("longer", "blackbox")
"""Rows of networks that go on from the cross-entropy network."""

METHODS = MethodsColumn(
    "table1",
    METRIC,
    "MCR",
    methods={
        "self-paced": None,
        "l2t-dlf": "l2t-dlf",
        "moew": "moew",
        "ala-literal": None,
        "ala": None,
        "ala-multi": "ala",
        "reloss": None,
        "reloss-anchored": None,
    },
    paper_column="cifar10/mcr",
)
"""Networks that methods train, each with the paper's row."""

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)", paper_row="ce"),
    Row("large-margin", "large-margin softmax", "cross-entropy", "large-margin"),
    LONGER,
    Row(
        "blackbox",
        "black-box differentiation",
        "cross-entropy",
        "blackbox",
        note="trained from the cross-entropy network, with the recall loss",
    ),
    *METHODS.rows,
    *CONTROL_ROWS,
    *METRICOPT_ROWS,
    finetuned("large-margin-loss-only", "large-margin fine-tune, last step"),
    finetuned(
        "large-margin-dense",
        "large-margin fine-tune, dense eval",
        "large-margin-loss-only",
        rival_row="large-margin-dense",
    ),
    finetuned(
        "large-margin-metricopt",
        "MetricOpt (SGD) + large-margin",
        "large-margin-loss-only",
        "metricopt-sgd-large-margin",
        rival_row="large-margin-dense",
    ),
    finetuned(
        "large-margin-metricopt-adam",
        "MetricOpt (Adam) + large-margin",
        "large-margin-loss-only",
        rival_row="large-margin-dense",
    ),
    *OUTPUT_ROWS,
)


def plans(size: ImageSize) -> dict[str, tuple[str, Plan]]:
    """Return the loss of theta and how the row is filled, by row."""
    found = cross_entropy_plans(size) | on_cross_entropy(output_plans(METRIC, size))
    return found | {
        "large-margin": ("large-margin", untouched()),
        "longer": ("cross-entropy", untouched()),
        "blackbox": ("blackbox-recall", untouched()),
        "large-margin-loss-only": ("large-margin", loss_only(size)),
        "large-margin-dense": ("large-margin", dense(size, size.steps)),
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
    network, images = default_network(tier), problem.here(offline)
    rows = {}
    for row, (loss, plan) in plans(size).items():
        trained = TrainedNetwork(network, loss, warm=row in WARM)
        rows[row] = image_row(tier, images, trained, plan)
    part = Part("natural", f"{problem.name}/{METRIC}", METRIC, size.steps, rows)
    count = replicates or size.replicates
    return [
        *table_specs("table1", tier, [part], replicates=count),
        *METHODS.specs(tier, replicates, offline),
    ]


def layout(tier: str) -> TableLayout:
    """Return what Table 1 looks like at a tier."""
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    column = Column(
        f"{problem.name}/{METRIC}",
        f"{problem.name} MCR",
        Unit(METRIC),
        paper_column=None if tier == "smoke" else "cifar10/mcr",
        test_per_train=problem.problem.test_per_train,
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
        columns=(column, METHODS.column(tier)),
        paper_table="Table 1",
        loss_only_row="loss-only",
        untouched_row="cross-entropy",
        query_budgets=query_budgets(size),
        query_arms=QUERY_ARMS,
        network_of=network_of,
        rival_row="loss-only-dense",
        notes=(*NOTES, METHODS.note(tier)),
        mixed=True,
    )


NOTES = (
    "There is one network per loss.",
    "The paper's spread seems to be over fine-tuning runs, too.",
    "All runs share one test split. On 10,000 images an error of .085 has a standard "
    "error of .0028, which the spread does not include.",
    "Tier local: networks are trained in bfloat16 with short one-cycle schedules: 40 "
    "epochs for cross-entropy, 24 for large-margin softmax (m = 4 only), and 6 more "
    "after cross-entropy for black-box differentiation.",
    SIZE_NOTE,
    "FiLM has the direct form and sits at the last batch norm. The paper does not say "
    "where its d = 128 parameters enter. The literal row has the same adapter.",
    RECIPE_NOTE,
    OFFSETS_NOTE,
)

EXPERIMENTS.register("table1")(Experiment("table1", layout, specs))

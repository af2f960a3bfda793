"""Table 2 of MetricOpt: area under the precision-recall curve on CIFAR-10.

Source: Huang et al., CVPR 2021, Table 2 and Sec. 4.1. The columns of ResNet-32, the
control arms, the oracles and the arms at equal queries are ours. The paper does not say
by which scores images are ranked. With cross-entropy everything depends on it, so there
is a column for softmax probabilities and one for raw outputs.
"""

from itertools import product

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.arms import dense, loss_only, untouched
from benchmarks.experiments.shared.image_arms import (
    CONTROL_ROWS,
    LONGER,
    METRICOPT_ROWS,
    MOVING_SCORES,
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
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

METRIC, RAW = "aucpr", "aucpr-macro-logits"
SCORES = {METRIC: "AUCPR", RAW: "AUCPR, raw outputs"}
NETWORKS = {"small": "small", "resnet32": "ResNet-32"}
SMOKE_NETWORKS = {"digit-net": "digits"}
WARM = ("longer", "blackbox")
"""Rows of networks that go on from the cross-entropy network."""
WARM_LOSSES = ("aucpr", "pairwise-aucroc")
"""Losses that ResNet-32, too, goes on with after cross-entropy."""
LEFT_OUT = ("class-offsets", "metricopt-literal", "oracle-observe", *MOVING_SCORES)
"""Rows of Table 1 left out of all columns: some shift all scores of a class, which
leaves its ranking and AP as they are, others would tell nothing new."""
LEFT_OUT_OF_NETWORK = {
    "small": (
        "longer",
        "random-search",
        "guided-cma",
        "oracle-test",
        "metricopt-q500",
        "aucpr-loss-only",
        "aucpr-dense",
        "aucpr-metricopt",
    ),
}
"""Rows left out of the columns of a network, to save time and released weights."""

METHODS = MethodsColumn(
    "table2",
    METRIC,
    "AUCPR",
    methods={
        "moew": "moew",
        "ala": None,
        "ala-multi": "ala",
        "reloss-anchored": None,
    },
)
"""Networks that methods train, each with the paper's row."""

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)", paper_row="ce"),
    LONGER,
    Row("aucroc", "pairwise AUCROC loss", "cross-entropy", "aucroc"),
    Row("aucpr", "AUCPR loss", "cross-entropy", "aucpr"),
    Row(
        "blackbox",
        "black-box differentiation",
        "cross-entropy",
        "blackbox",
        note="trained from the cross-entropy network, with the AP loss",
    ),
    *METHODS.rows,
    *(row for row in CONTROL_ROWS + METRICOPT_ROWS if row.name not in LEFT_OUT),
    finetuned("aucpr-loss-only", "AUCPR loss fine-tune, last step"),
    finetuned(
        "aucpr-dense",
        "AUCPR loss fine-tune, dense eval",
        "aucpr-loss-only",
        rival_row="aucpr-dense",
    ),
    finetuned(
        "aucpr-metricopt",
        "MetricOpt (SGD) + AUCPR loss",
        "aucpr-loss-only",
        "metricopt-sgd-aucpr",
        rival_row="aucpr-dense",
    ),
    *(row for row in OUTPUT_ROWS if row.name not in LEFT_OUT),
)


def plans(size: ImageSize, network: str, metric: str) -> dict[str, tuple[str, Plan]]:
    """Return the loss of theta and how the row is filled, by row."""
    found = cross_entropy_plans(size) | on_cross_entropy(output_plans(metric, size))
    found |= {
        "longer": ("cross-entropy", untouched()),
        "aucroc": ("pairwise-aucroc", untouched()),
        "aucpr": ("aucpr", untouched()),
        "blackbox": ("blackbox-ap", untouched()),
    }
    if metric == METRIC:
        # Raw outputs of these networks are ranked in either column.
        found |= {
            "aucpr-loss-only": ("aucpr", loss_only(size)),
            "aucpr-dense": ("aucpr", dense(size, size.steps)),
            "aucpr-metricopt": ("aucpr", metricopt(size)),
        }
    left_out = {*LEFT_OUT, *LEFT_OUT_OF_NETWORK.get(network, ())}
    left_out |= {"random-search"} if metric == RAW else set()
    return {row: plan for row, plan in found.items() if row not in left_out}


def networks(tier: str) -> dict[str, str]:
    """Return the networks of a tier, one column each, with their labels."""
    return SMOKE_NETWORKS if tier == "smoke" else NETWORKS


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    images, parts = problem.here(offline), []
    for network, metric in product(networks(tier), SCORES):
        rows = {}
        for row, (loss, plan) in plans(size, network, metric).items():
            warm = row in WARM or (network == "resnet32" and loss in WARM_LOSSES)
            trained = TrainedNetwork(network, loss, warm)
            rows[row] = image_row(tier, images, trained, plan)
        column = f"{network}/{metric}"
        parts.append(Part("natural", column, metric, size.steps, rows))
    count = replicates or size.replicates
    return [
        *table_specs("table2", tier, parts, replicates=count),
        *METHODS.specs(tier, replicates, offline),
    ]


def layout(tier: str) -> TableLayout:
    """Return what Table 2 looks like at a tier."""
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    columns = tuple(
        Column(
            f"{network}/{metric}",
            f"{label} {score}",
            Unit(metric),
            paper_column="cifar10/aucpr" if network == "small" else None,
            test_per_train=problem.problem.test_per_train,
        )
        for network, label in networks(tier).items()
        for metric, score in SCORES.items()
    )
    return TableLayout(
        experiment="table2",
        title="Table 2 of MetricOpt (CVPR 2021): AUCPR on CIFAR-10",
        caption=(
            "Mean over the classes of the average precision of one class against the "
            "rest. FiLM on the last batch norm, d = 128, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks. Queries "
            "of meta-training are charged."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(*columns, METHODS.column(tier)),
        paper_table="Table 2",
        loss_only_row="loss-only",
        untouched_row="cross-entropy",
        query_budgets=query_budgets(size),
        query_arms=QUERY_ARMS,
        network_of=network_of,
        rival_row="loss-only-dense",
        notes=(*NOTES, METHODS.note(tier)),
    )


NOTES = (
    "There is one network per loss.",
    "Tier local: networks are trained with short one-cycle schedules. For the AUC "
    "losses ResNet-32 is trained for 6 epochs after cross-entropy.",
    "The paper uses the network of Eban et al., which could not be verified. `small` "
    "is the tutorial network that we infer it to be.",
    "A query of `small` takes two to four times as long as one of ResNet-32, because "
    "its dense layers come after FiLM. Its columns lack random search, guided CMA-ES, "
    "the oracle, MetricOpt with 500 queries, the control of 6 more epochs, and "
    "fine-tuning with the AUCPR loss.",
    "The literal Algorithm 1 stands in Tables 1 and 3.",
    "Images are ranked by softmax probabilities for cross-entropy, and by raw outputs "
    "for the AUC, AUCPR and AP losses, which train every output by itself. Columns "
    "`raw outputs` rank by raw outputs for cross-entropy, too.",
    "Cross-entropy does not determine a constant that is added to all outputs of an "
    "image, so its raw outputs are not comparable between images.",
    "The paper does not say what it ranks by, so both kinds of columns are compared "
    "with its numbers.",
    SIZE_NOTE,
    RECIPE_NOTE,
    OFFSETS_NOTE,
)

EXPERIMENTS.register("table2")(Experiment("table2", layout, specs))

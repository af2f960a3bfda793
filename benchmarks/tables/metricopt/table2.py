"""Table 2 of MetricOpt: area under the precision-recall curve on CIFAR-10.

Source: Huang et al., CVPR 2021, Table 2 and Sec. 4.1. The columns of ResNet-32, the
control arms, the oracles and the arms at equal queries are ours. The paper does not say
by which scores images are ranked. With cross-entropy everything depends on it, so there
is a column for softmax probabilities and one for raw outputs.
"""

from dataclasses import replace
from itertools import product

from benchmarks.problems.images import tiers
from benchmarks.rows import ceilings, controls, metricopt
from benchmarks.rows.learned_optimizers import LEARNED, LEARNED_BELOW_ZERO
from benchmarks.rows.networks import blackbox, fine_tuned, longer, network
from benchmarks.runs.spec import Unit
from benchmarks.tables.network_methods import methods_column
from benchmarks.tables.parts import (
    LABELS,
    NATURAL,
    OFFSETS_NOTE,
    RECIPE_NOTE,
    SIZE_NOTE,
    column_of,
    finetuning_fields,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import LeftOut, Place, Table, experiment_of, table

SOFTMAX, RAW = Unit("aucpr"), Unit("aucpr-macro-logits")
SCORES = {SOFTMAX: "AUCPR", RAW: LABELS[RAW.label]}
NETWORKS = {"small": "small", "resnet32": "ResNet-32"}
SMOKE_NETWORKS = {"digit-net": "digits"}

LEARNED_ON = ("small", "digit-net")
"""Networks with MetricOpt (learned), by raw outputs."""
LONGER = longer()
NETWORK_ROWS = (
    LONGER,
    network("aucroc", "pairwise AUCROC loss", "pairwise-aucroc", {"Table 2": "aucroc"}),
    network("aucpr", "AUCPR loss", "aucpr", {"Table 2": "aucpr"}),
    blackbox("blackbox-ap", "with the AP loss"),
)
FINE_TUNED = fine_tuned("aucpr", "AUCPR loss", LEARNED_BELOW_ZERO)
"""Raw outputs of these networks are ranked in either column, so one has the rows."""

ELSEWHERE = LeftOut(
    "stands in Table 1",
    (metricopt.LITERAL, metricopt.MIRROR, ceilings.ORACLE_ON_OBSERVE),
)
SHORT = LeftOut("left out of raw outputs, to save time", (controls.RANDOM_SEARCH,))
SLOW = LeftOut(
    "a query of the small network takes two to four times as long",
    (
        LONGER,
        controls.RANDOM_SEARCH,
        controls.GUIDED_CMA,
        ceilings.ORACLE_ON_TEST,
        metricopt.WITH_500_QUERIES,
        *FINE_TUNED,
    ),
)


def table2(tier: str) -> Table:
    """Return Table 2 at a tier."""
    size, problem = tiers.SIZES[tier], tiers.cifar10(tier)
    networks = SMOKE_NETWORKS if tier == "smoke" else NETWORKS
    methods, methods_shown, methods_note = methods_column(
        tier, "aucpr", "AUCPR", ("moew", "ala", "ala-multi", "reloss-anchored")
    )
    return table(
        [*(_place(problem, *part) for part in product(networks, SCORES)), methods],
        title="Table 2 of MetricOpt (CVPR 2021): AUCPR on CIFAR-10",
        caption=(
            "Mean over the classes of the average precision of one class against the "
            "rest. FiLM on the last batch norm, d = 128, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks. Queries "
            "of meta-training are charged."
        ),
        convention=tiers.CONVENTION,
        blocks=NATURAL,
        columns=(
            *(
                column_of(
                    problem,
                    metric,
                    f"{label} {score}",
                    name=f"{name}/{metric.label}",
                    paper_column="cifar10/aucpr" if name == "small" else None,
                )
                for name, label in networks.items()
                for metric, score in SCORES.items()
            ),
            methods_shown,
        ),
        paper_table="Table 2",
        **finetuning_fields(size),
        notes=(*NOTES, methods_note),
    )


def _place(problem: tiers.Images, name: str, metric: Unit) -> Place:
    raw = metric == RAW
    learned = [LEARNED] if raw and name in LEARNED_ON else []
    left_out = [
        ELSEWHERE,
        *([SHORT] if raw else []),
        *([SLOW] if name == "small" else []),
    ]
    return Place(
        "natural",
        replace(problem, network=tiers.TrainedNetwork(name)),
        metric,
        f"{name}/{metric.label}",
        own=(*NETWORK_ROWS, *([] if raw else FINE_TUNED), *learned),
        left_out=tuple(left_out),
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
    "MetricOpt (learned) is run on the small network by raw outputs, and on ResNet-32 "
    "on top of the AUCPR loss, to save time: an optimizer takes up to half an hour.",
    "The paper does not say what it ranks by, so both kinds of columns are compared "
    "with its numbers.",
    SIZE_NOTE,
    RECIPE_NOTE,
    OFFSETS_NOTE,
    "By softmax probabilities MetricOpt on outputs leaves both networks as they are. "
    "The portfolio picks among the fine-tunings that MetricOpt on outputs starts "
    "from.",
)

EXPERIMENTS.register("table2")(experiment_of("table2", table2))

"""Table 1 of MetricOpt: misclassification rate on CIFAR-10 with ResNet-32.

Source: Huang et al., CVPR 2021, Table 1 and Sec. 4.1. The control arms, the oracles and
the arms at equal queries are ours.
"""

from dataclasses import replace

from benchmarks.problems.images import tiers
from benchmarks.rows.contract import Row
from benchmarks.rows.learned_optimizers import LEARNED
from benchmarks.rows.metricopt import ADAM
from benchmarks.rows.networks import blackbox, fine_tuned, longer, network
from benchmarks.runs.spec import Unit
from benchmarks.tables.network_methods import methods_column
from benchmarks.tables.parts import (
    NATURAL,
    OFFSETS_NOTE,
    RECIPE_NOTE,
    SIZE_NOTE,
    column_of,
    finetuning_fields,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("mcr")
METHODS = (
    "self-paced",
    "l2t-dlf",
    "moew",
    "ala-literal",
    "ala",
    "ala-multi",
    "reloss",
    "reloss-anchored",
)
LOSS = "large-margin"
OWN: tuple[Row, ...] = (
    network(LOSS, "large-margin softmax", LOSS, {"Table 1": "large-margin"}),
    longer(),
    blackbox("blackbox-recall", "with the recall loss"),
    LEARNED,
    *fine_tuned(LOSS, "large-margin", ADAM, LEARNED),
)


def table1(tier: str) -> Table:
    """Return Table 1 at a tier."""
    size, problem = tiers.SIZES[tier], tiers.cifar10(tier)
    methods, methods_shown, methods_note = methods_column(tier, "mcr", "MCR", METHODS)
    paper = {} if tier == "smoke" else {"paper_column": "cifar10/mcr"}
    return table(
        [Place("natural", problem, METRIC, own=OWN), methods],
        title="Table 1 of MetricOpt (CVPR 2021): misclassification rate on CIFAR-10",
        caption=(
            f"{tiers.network_label(tier)}, FiLM: a scale and a shift for every channel "
            f"of its last feature map. T = {size.steps}, K = {size.observations}, "
            f"{size.tasks} tasks. Queries of meta-training are charged."
        ),
        convention=tiers.CONVENTION,
        blocks=NATURAL,
        columns=(column_of(problem, METRIC, **paper), replace(methods_shown, **paper)),
        paper_table="Table 1",
        **finetuning_fields(size),
        notes=(*NOTES, methods_note),
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
    "MetricOpt on outputs keeps the network as it is in most searches for the error. "
    "What a long search finds on 5,000 images does not carry over to test.",
    "MOEW is worse than cross-entropy in error; in AUCPR no difference is shown. It "
    "tries eight sets of weights, each in a training of two epochs; its authors try "
    "200.",
)

EXPERIMENTS.register("table1")(experiment_of("table1", table1))

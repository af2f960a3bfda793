"""Figures 3 and S4 of MetricOpt, on CIFAR-10: the value function taken apart.

Each row changes one thing of the recipe: how the value function is trained, where its
metrics come from and how many, or the parameters phi, their number and their place.
Source: Huang et al., CVPR 2021, Fig. 3 and Fig. S4. The metric is worst-class error.
The paper's metric, the error, moves by less than its sampling noise here; see Table 1.
"""

import math
from dataclasses import replace
from typing import Any

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.arms import loss_only
from benchmarks.experiments.shared.image_arms import metricopt
from benchmarks.experiments.shared.plans import Part, Plan, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.images.tiers import (
    BLOCKS,
    CONVENTION,
    FILM,
    SIZES,
    ImageSize,
    TrainedNetwork,
    default_network,
    image_pipeline,
    network_label,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

TASKS = {"paper": 500, "local": 120, "smoke": 8}
METRIC = "worst-class-error"
COLUMN = f"cifar10/{METRIC}"
LAST_BLOCK = {"resnet32": ("17.bn1", "17.bn2"), "digit-net": ("1", "4")}
HEAD = {"resnet32": "20", "digit-net": "8"}
SIZES_OF_PHI = (32, 64, 128, 256)
SHARES_OBSERVED = {"k2": 0.025, "k10": 0.1, "k100": 1.0}

FIG_3 = {
    "no-ordinal": "no ordinal term",
    "no-sigma": "no uncertainty",
    "one-task": "one task per update",
    "one-new": "one new task per update, 8 replayed",
    "off-policy": "loss trajectories only",
    "offline": "offline, off-policy",
}
FIG_S4 = {
    "train-metrics": "metrics of training images",
    "k2": "K = 2.5 % of T",
    "k10": "K = 10 % of T",
    "k100": "K = 100 % of T",
}
OTHER_PHI = {
    "last-biases": "phi: biases of the last layer",
    "more-biases": "phi: biases of the last block and layer",
    "earlier": "FiLM on both maps of the last block",
    **{f"d{size}": f"generator, d = {size}" for size in SIZES_OF_PHI},
}
LABELS = {"recipe": "the recipe: K = 5 %, direct FiLM"} | FIG_3 | FIG_S4 | OTHER_PHI

ROWS = (
    finetuned("loss-only", "CE fine-tune, last step"),
    *(
        Row(row, label, "loss-only", same_starts=row not in OTHER_PHI)
        for row, label in LABELS.items()
    ),
    finetuned("adam", "the recipe, followed with Adam", "loss-only"),
    finetuned("literal", "Algorithm 1, literal", "loss-only"),
)


def recipes(tasks: int) -> dict[str, dict[str, Any]]:
    """Return the changes to the recipe, by row."""
    return {
        "no-ordinal": {"mining": "none"},
        "no-sigma": {"uncertainty": False},
        "one-task": {"group": 1, "replay": 0},
        "one-new": {"group": 1},
        "off-policy": {"on_policy": 0.0},
        "offline": {"on_policy": 0.0, "block": tasks, "outer_rate": "constant"},
        "train-metrics": {"queries_on": "train"},
    }


def adapters(network: str) -> dict[str, FilmSettings]:
    """Return the adapters that are not the usual one, by row."""
    block, head = LAST_BLOCK[network], HEAD[network]
    generators = {f"d{d}": FilmSettings("generator", size=d) for d in SIZES_OF_PHI}
    return generators | {
        "last-biases": FilmSettings("shift", (head,)),
        "more-biases": FilmSettings("shift", (*block, head)),
        "earlier": FilmSettings(sites=block),
    }


def plans(size: ImageSize) -> dict[str, Plan]:
    """Return how rows are filled: those of Fig. 3 by several value functions."""
    changes, single = recipes(size.tasks), replace(size, value_functions=1)
    sizes = dict.fromkeys(FIG_S4 | OTHER_PHI, single) | {
        row: replace(single, observations=math.ceil(share * size.steps))
        for row, share in SHARES_OBSERVED.items()
    }
    return {
        "loss-only": loss_only(size),
        **{
            row: metricopt(sizes.get(row, size), changes=changes.get(row, {}))
            for row in LABELS
        },
        "adam": metricopt(size, optimizer="adam"),
        "literal": metricopt(size, name="metricopt-literal"),
    }


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size = replace(SIZES[tier], tasks=TASKS[tier])
    problem = (DIGITS if tier == "smoke" else CIFAR10).here(offline)
    trained = TrainedNetwork(default_network(tier))
    changed = adapters(trained.network)
    rows = {
        row: (
            image_pipeline(tier, problem, trained, adapter=changed.get(row, FILM)),
            plan,
        )
        for row, plan in plans(size).items()
    }
    part = Part("natural", COLUMN, METRIC, size.steps, rows)
    return table_specs("figs4", tier, [part], replicates=replicates or size.replicates)


def layout(tier: str) -> TableLayout:
    """Return what the ablation looks like at a tier."""
    size, problem = SIZES[tier], DIGITS if tier == "smoke" else CIFAR10
    ratio = problem.problem.test_per_train
    error = Column(COLUMN, "worst-class error", Unit(METRIC), test_per_train=ratio)
    return TableLayout(
        experiment="figs4",
        title="Figures 3 and S4: the value function on CIFAR-10, taken apart",
        caption=(
            f"{network_label(tier)}, {TASKS[tier]} tasks of T = {size.steps} steps. "
            "Every row differs from the recipe only in what its name says."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(error,),
        loss_only_row="loss-only",
        query_budgets=(),
        rival_row="recipe",
        ablation_rows=(*LABELS, "literal"),
        cloud_rows=("recipe", "no-ordinal"),
        network_of=network_of,
        notes=(
            "The paper's figures show the error. Here the error moves by less than its "
            "sampling noise (see Table 1), so worst-class error is shown.",
            "Biases of all layers, or FiLM at every stage, would need the whole "
            "network for every query. The last block stands in for both.",
            "There are fewer tasks than in Table 1: with little training, differences "
            "between recipes are easier to see and cheaper to measure.",
            "Rows of Fig. 3, and those below all others, have three value functions, "
            "trained with the same noise in every row. Rows of Fig. S4 and of other "
            "phi have one, which proves little: by chance alone value functions "
            "differ as the three of one row do.",
        ),
    )


EXPERIMENTS.register("figs4")(Experiment("figs4", layout, specs))

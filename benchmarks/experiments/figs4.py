"""Figures 3 and S4 of MetricOpt, on CIFAR-10: the value function taken apart.

Each row changes one thing of the recipe: how the value function is trained, where its
metrics come from and how many, or the parameters phi, their number and their place.
Source: Huang et al., CVPR 2021, Fig. 3 and Fig. S4. The metric is worst-class error:
the paper's, the error, moves by less than its sampling noise here, see Table 1.
"""

import math
from dataclasses import replace
from typing import Any

from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.image_arms import loss_only, metricopt
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

TASKS = {"paper": 500, "local": 120, "smoke": 8}
METRIC = "worst-class-error"
COLUMN = f"cifar10/{METRIC}"
LAST_BLOCK = {"resnet32": ["17.bn1", "17.bn2"], "digit-net": ["1", "4"]}
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
    "last-biases": "phi: biases of the last layer",
    "more-biases": "phi: biases of the last block and layer",
    "earlier": "FiLM on both maps of the last block",
    **{f"d{size}": f"generator, d = {size}" for size in SIZES_OF_PHI},
}
LABELS = {"recipe": "the recipe: K = 5 %, direct FiLM"} | FIG_3 | FIG_S4

ROWS = (
    Row("loss-only", "CE fine-tune, last step"),
    *(Row(row, label, "loss-only") for row, label in LABELS.items()),
    Row("adam", "the recipe, followed with Adam", "loss-only"),
    Row("literal", "Algorithm 1, literal", "loss-only"),
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


def adapters(network: str) -> dict[str, dict[str, Any]]:
    """Return the changes to the adapter, by row."""
    block, head = LAST_BLOCK[network], HEAD[network]
    generators = {f"d{d}": {"form": "generator", "size": d} for d in SIZES_OF_PHI}
    return generators | {
        "last-biases": {"form": "shift", "sites": [head]},
        "more-biases": {"form": "shift", "sites": [*block, head]},
        "earlier": {"sites": block},
    }


def arms(size: Size) -> dict[str, Arm]:
    """Return the arms by row."""
    changes = recipes(size.tasks)
    observed = {
        row: replace(size, observations=math.ceil(share * size.steps))
        for row, share in SHARES_OBSERVED.items()
    }
    return {
        "loss-only": loss_only(size),
        **{
            row: metricopt(observed.get(row, size), changes=changes.get(row, {}))
            for row in LABELS
        },
        "adam": metricopt(size, optimizer="adam"),
        "literal": metricopt(size, name="metricopt-literal"),
    }


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    problem = Problem("cifar10", "digits" if tier == "smoke" else "cifar10")
    network = "digit-net" if tier == "smoke" else "resnet32"
    variant = resolve_variant(problem.dataset, offline=offline)
    found = []
    for row, used in arms(replace(SIZES[tier], tasks=TASKS[tier])).items():
        adapter = adapters(network).get(row, {})
        setting = Setting(COLUMN, problem, variant, Backbone(network), adapter)
        place = Place("figs4", tier, "natural", row, METRIC, 0)
        found += repeated(place, setting, used, replicates)
    return found


def layout(tier: str) -> TableLayout:
    """Return what the ablation looks like at a tier."""
    size = SIZES[tier]
    return TableLayout(
        experiment="figs4",
        title="Figures 3 and S4: the value function on CIFAR-10, taken apart",
        caption=(
            f"{network_label(tier)}, {TASKS[tier]} tasks of T = {size.steps} steps; "
            "every row differs from the recipe in what it names."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=ROWS,
        columns=(Column(COLUMN, "worst-class error", METRIC),),
        loss_only_row="loss-only",
        query_budgets=(),
        ablation_rows=(*LABELS, "literal"),
        cloud_rows=("recipe", "no-ordinal"),
        unit=META_TEST,
        notes=(
            "The metric of the paper's figures is the error, which moves by less than "
            "its sampling noise here; see Table 1.",
            "Biases of all layers, and FiLM at every stage, need the whole network for "
            "every query; the last block stands for them.",
            "Fewer tasks than in Table 1: differences show earlier and cost less.",
            "One value function per row, trained with the same noise: how far two of "
            "one recipe differ by chance is not in the spread.",
        ),
    )


EXPERIMENTS.register("figs4")(
    Experiment("figs4", "ablation of the value function on CIFAR-10", layout, specs)
)

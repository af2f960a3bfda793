"""Figure S4 of MetricOpt: what the value function learns from, and what it sees.

Each row changes one thing of the recipe: metrics of training images instead of held-out
ones, K queries per trajectory, the parameters phi, their number and their place.
Source: Huang et al., CVPR 2021, Fig. S4. The column worst-class error is ours.
"""

import math
from typing import Any

from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.image_arms import STEPS, WIDE
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
from benchmarks.protocol import Arm, Place, method
from benchmarks.records import RunSpec
from benchmarks.tasks import resolve_variant

TASKS = {"paper": 500, "local": 120, "smoke": 8}
METRICS = {"mcr": "MCR", "worst-class-error": "worst-class error"}
LAST_BLOCK = {"resnet32": ["17.bn1", "17.bn2"], "digit-net": ["1", "4"]}
HEAD = {"resnet32": "20", "digit-net": "8"}
SIZES_OF_PHI = (32, 64, 128, 256)

LABELS = {
    "recipe": "the recipe: K = 5 %, direct FiLM",
    "train-metrics": "metrics of training images",
    "k2": "K = 2.5 % of T",
    "k10": "K = 10 % of T",
    "k100": "K = 100 % of T",
    "last-biases": "phi: biases of the last layer",
    "more-biases": "phi: biases of the last block and layer",
    "earlier": "FiLM on both maps of the last block",
    **{f"d{size}": f"generator, d = {size}" for size in SIZES_OF_PHI},
}


def recipes(size: Size) -> dict[str, dict[str, Any]]:
    """Return the changes to the recipe, by row."""
    shares = {"k2": 0.025, "k10": 0.1, "k100": 1.0}
    found: dict[str, dict[str, Any]] = {"train-metrics": {"queries_on": "train"}}
    for row, share in shares.items():
        observations = math.ceil(share * size.steps)
        found[row] = {"rollout": {"steps": size.steps, "observations": observations}}
    return found


def adapters(network: str) -> dict[str, dict[str, Any]]:
    """Return the changes to the adapter, by row."""
    block, head = LAST_BLOCK[network], HEAD[network]
    generators = {f"d{d}": {"form": "generator", "size": d} for d in SIZES_OF_PHI}
    return generators | {
        "last-biases": {"form": "shift", "sites": [head]},
        "more-biases": {"form": "shift", "sites": [*block, head]},
        "earlier": {"sites": block},
    }


def arm(size: Size, tasks: int, changes: dict[str, Any]) -> Arm:
    """Return MetricOpt with a changed recipe, and all queries that takes."""
    rollout = {"steps": size.steps, "observations": size.observations}
    recipe = WIDE | {"tasks": tasks, "rollout": rollout} | changes
    per_task = recipe["rollout"]["observations"] + 1
    return Arm(
        *method("metricopt", recipe=recipe, steps=STEPS),
        queries=tasks * per_task + 20,
        meta_tests=size.meta_tests,
        diagnose=True,
    )


def specs(tier: str, replicates: int | None, offline: bool) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, tasks = SIZES[tier], TASKS[tier]
    problem = Problem("cifar10", "digits" if tier == "smoke" else "cifar10")
    network = "digit-net" if tier == "smoke" else "resnet32"
    variant = resolve_variant(problem.dataset, offline=offline)
    found = []
    for metric in METRICS:
        for row in ("loss-only", *LABELS):
            used = arm(size, tasks, recipes(size).get(row, {}))
            if row == "loss-only":
                used = Arm(*method(row), meta_tests=size.meta_tests)
            setting = Setting(
                f"{problem.name}/{metric}",
                problem,
                variant,
                Backbone(network),
                adapters(network).get(row, {}),
            )
            place = Place("figs4", tier, "natural", row, metric, 0)
            found += repeated(place, setting, used, replicates)
    return found


def layout(tier: str) -> TableLayout:
    """Return what the ablation looks like at a tier."""
    size = SIZES[tier]
    return TableLayout(
        experiment="figs4",
        title="Figure S4: signals and inputs of the value function",
        caption=(
            f"{network_label(tier)}, {TASKS[tier]} tasks of T = {size.steps} steps; "
            "every row differs from the recipe in what it names."
        ),
        convention=CONVENTION,
        blocks=BLOCKS,
        rows=(
            Row("loss-only", "CE fine-tune, last step"),
            *(Row(row, label, "loss-only") for row, label in LABELS.items()),
        ),
        columns=tuple(
            Column(f"cifar10/{metric}", label, metric)
            for metric, label in METRICS.items()
        ),
        loss_only_row="loss-only",
        ablation_rows=tuple(LABELS),
        unit=META_TEST,
        notes=(
            "Biases of all layers, and FiLM at every stage, need the whole network for "
            "every query; the last block stands for them.",
            "Fewer tasks than in Table 1: differences show earlier and cost less.",
        ),
    )


EXPERIMENTS.register("figs4")(
    Experiment("figs4", "ablation of the value function on CIFAR-10", layout, specs)
)

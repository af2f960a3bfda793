"""Figure 3 of MetricOpt: what the value function's training is made of, taken apart.

Each row leaves out or replaces one choice of the recipe. Source: Huang et al., CVPR
2021, Fig. 3; the rows beyond its ordinal term, sigma and offline training are ours.
"""

from typing import Any

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.arms import loss_only, method
from benchmarks.experiments.shared.plans import Plan, table_specs
from benchmarks.experiments.shared.problems import (
    A9A,
    DIGIT,
    NamedProblem,
    convention,
    metric_column,
)
from benchmarks.problems.tabular.settings import BinaryProblem
from benchmarks.problems.tabular.tiers import (
    QUERIES,
    SIZES,
    STEPS,
    TabularSize,
    tabular_parts,
)
from benchmarks.report.layout import Block, Row, TableLayout, finetuned
from benchmarks.runs.spec import Arm, RunSpec

TASKS = {"paper": 1_600, "local": 400, "smoke": 48}
REPLICATES = {"paper": 10, "local": 3, "smoke": 2}
"""Each with a network and a value function of its own."""
METRICS = {"paper": ("mcr", "f1"), "local": ("mcr", "f1"), "smoke": ("f1",)}

CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("recipe", "the recipe", {}),
    ("raw-targets", "raw targets", {"standardise_cost": False}),
    ("one-task", "one task per update", {"group": 1}),
    (
        "one-step",
        "one SGD step per update",
        {"inner_steps": 1, "inner_optimizer": "sgd"},
    ),
    ("off-policy", "loss trajectories only", {"on_policy": 0.0}),
    ("wide-start", "phi_0 ~ N(0, 0.5^2)", {"rollout": {"start_deviation": 0.5}}),
    ("adapted", "w~ of the last update", {"returned": "adapted", "momentum": 0.1}),
    ("hardest", "hardest triplets", {"mining": "hardest"}),
    ("random-triplets", "random triplets", {"mining": "random"}),
    ("gamma-10", "gamma = 10, as the paper", {"gamma": 10.0}),
    ("no-ordinal", "no ordinal term", {"mining": "none"}),
    ("no-sigma", "no uncertainty", {"uncertainty": False}),
    ("replay", "replay, off-policy", {"on_policy": 0.0, "replay": 2}),
)


def plans(tier: str, size: TabularSize) -> dict[str, Plan]:
    """Return how rows are filled."""
    tasks = TASKS[tier]

    def learned(name: str, change: dict[str, Any]) -> Plan:
        arm = method(name, recipe={"tasks": tasks, **change})
        return Plan(arm, QUERIES, size.meta_tests, diagnose=True)

    offline = {"on_policy": 0.0, "block": tasks, "outer_rate": "constant"}
    changes = {name: change for name, _, change in CHANGES} | {"offline": offline}
    return {
        **{name: learned("metricopt", change) for name, change in changes.items()},
        "native-step": learned("metricopt-literal", LITERAL_TO_OURS),
        "literal": learned("metricopt-literal", {}),
        "loss-only": loss_only(size),
        "threshold-shift": Plan(Arm("threshold-shift")),
    }


# What turns the literal recipe back into ours, so that only the step is literal.
LITERAL_TO_OURS = {
    "group": 8,
    "inner_steps": 5,
    "inner_optimizer": "adam",
    "returned": "initial",
    "momentum": 0.02,
    "standardise_cost": True,
    "on_policy": 0.75,
    "gamma": None,
}

ROWS = (
    finetuned("loss-only", "CE fine-tune, last step"),
    Row("threshold-shift", "threshold shift", "loss-only"),
    *(finetuned(name, label, "loss-only") for name, label, _ in CHANGES),
    finetuned(
        "offline",
        "offline, off-policy",
        "loss-only",
        note="trained on all loss trajectories at once, without Reptile",
    ),
    finetuned(
        "native-step",
        "steps in native units",
        "loss-only",
        note="the recipe's value function with the steps of the literal row",
    ),
    finetuned("literal", "Algorithm 1, literal", "loss-only"),
)


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size = SIZES[tier]
    found = plans(tier, size)
    columns = ((problem_of(tier), METRICS[tier]),)
    parts = tabular_parts(tier, columns, lambda *place: found, offline=offline)
    return table_specs("fig3", tier, parts, replicates=replicates or REPLICATES[tier])


def problem_of(tier: str) -> NamedProblem[BinaryProblem]:
    """Return the problem of a tier."""
    return DIGIT if tier == "smoke" else A9A


def layout(tier: str) -> TableLayout:
    """Return what the ablation looks like at a tier."""
    problem = problem_of(tier)
    return TableLayout(
        experiment="fig3",
        title="Figure 3: the value function taken apart",
        caption=(
            f"{TASKS[tier]} tasks of T = {STEPS} steps with K = 3 queries each. Every "
            "row differs from the recipe only in what its name says."
        ),
        convention=convention([problem]),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        rows=ROWS,
        columns=tuple(metric_column(problem, metric) for metric in METRICS[tier]),
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        query_budgets=(),
        rival_row="recipe",
        ablation_rows=(
            *(name for name, _, _ in CHANGES),
            "offline",
            "native-step",
            "literal",
        ),
        cloud_rows=("recipe", "no-ordinal"),
        notes=(
            "The paper's Fig. 3 is on CIFAR-10. This figure repeats it on A9A; figs4 "
            "repeats it on CIFAR-10.",
            "There are fewer tasks than in Table 3: with little training, differences "
            "between recipes are easier to see and cheaper to measure.",
            "In the paper's Fig. 3 the ordinal term and the uncertainty give a gain.",
        ),
    )


EXPERIMENTS.register("fig3")(Experiment("fig3", layout, specs))

"""Figure 3 of MetricOpt: what the value function's training is made of, taken apart.

Each row leaves out or replaces one choice of the recipe. Source: Huang et al., CVPR
2021, Fig. 3; the rows beyond its ordinal term, sigma and offline training are ours.
"""

from typing import Any

from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.layout import Block, Row, TableLayout
from benchmarks.problems import A9A, DIGIT, convention, metric_column
from benchmarks.protocol import Arm, Place, method
from benchmarks.records import RunSpec
from benchmarks.tasks import resolve_variant
from benchmarks.uci import QUERIES, SIZES, STEPS, Size, spec

TASKS = {"paper": 1_600, "local": 400, "smoke": 48}
METRICS = ("mcr", "f1")

WITHOUT: tuple[tuple[str, str, dict[str, Any]], ...] = (
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
    ("no-ordinal", "no ordinal term", {"mining": "none"}),
    ("no-sigma", "no uncertainty", {"uncertainty": False}),
    ("replay", "replay, off-policy", {"on_policy": 0.0, "replay": 2}),
)


def arms(tier: str, size: Size) -> dict[str, Arm]:
    """Return the arms by row."""
    tasks = TASKS[tier]
    offline = {"on_policy": 0.0, "block": tasks, "outer_rate": "constant"}
    changes = {name: change for name, _, change in WITHOUT} | {"offline": offline}
    found = {
        name: Arm(
            *method("metricopt", recipe={"tasks": tasks, **change}),
            queries=QUERIES,
            meta_tests=size.meta_tests,
            diagnose=True,
        )
        for name, change in changes.items()
    }
    native = {**RECIPE_OF_LITERAL, "tasks": tasks}
    for name, recipe in (("native-step", native), ("literal", {"tasks": tasks})):
        found[name] = Arm(
            *method("metricopt-literal", recipe=recipe),
            queries=QUERIES,
            meta_tests=size.meta_tests,
            diagnose=True,
        )
    found["loss-only"] = Arm(*method("loss-only"), meta_tests=size.meta_tests)
    found["threshold-shift"] = Arm("threshold-shift")
    return found


# What turns the literal recipe back into ours, so that only the step is literal.
RECIPE_OF_LITERAL = {
    "group": 8,
    "inner_steps": 5,
    "inner_optimizer": "adam",
    "returned": "initial",
    "momentum": 0.02,
    "standardise_cost": True,
    "on_policy": 0.75,
}

ROWS = (
    Row("loss-only", "CE fine-tune, last step"),
    Row("threshold-shift", "threshold shift", "loss-only"),
    *(Row(name, label, "loss-only") for name, label, _ in WITHOUT),
    Row(
        "offline",
        "offline, off-policy",
        "loss-only",
        note="trained without Reptile on all loss trajectories at once",
    ),
    Row(
        "native-step",
        "steps in native units",
        "loss-only",
        note="the recipe's value function, followed as in the literal row",
    ),
    Row("literal", "Algorithm 1, literal", "loss-only"),
)


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem = SIZES[tier], DIGIT if tier == "smoke" else A9A
    variant = resolve_variant(problem.dataset, offline=offline)
    return [
        spec(
            Place("fig3", tier, "balanced", row, metric, replicate),
            problem,
            variant,
            arm,
        )
        for metric in METRICS
        for row, arm in arms(tier, size).items()
        for replicate in range(replicates or size.replicates)
    ]


def layout(tier: str) -> TableLayout:
    """Return what the ablation looks like at a tier."""
    problem = DIGIT if tier == "smoke" else A9A
    columns = tuple(
        metric_column(
            problem,
            metric,
        )
        for metric in METRICS
    )
    return TableLayout(
        experiment="fig3",
        title="Figure 3: the value function taken apart",
        caption=(
            f"{TASKS[tier]} tasks of T = {STEPS} steps with K = 3 queries each; every "
            "row differs from the recipe in what it names."
        ),
        convention=convention(problem),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        rows=ROWS,
        columns=columns,
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        query_budgets=(),
        ablation_rows=(
            *(name for name, _, _ in WITHOUT),
            "offline",
            "native-step",
            "literal",
        ),
        cloud_rows=("recipe", "no-ordinal"),
        notes=(
            "The paper's Fig. 3 is on CIFAR-10; this one asks the same of A9A, and "
            "figs4 of CIFAR-10.",
            "Fewer tasks than in Table 3: differences show earlier and cost less.",
            "Tier local: the ordinal term changes nothing, and the uncertainty nothing "
            "but F; the paper's Fig. 3 shows a gain by both.",
        ),
    )


EXPERIMENTS.register("fig3")(
    Experiment("fig3", "ablation of the value function on A9A", layout, specs)
)

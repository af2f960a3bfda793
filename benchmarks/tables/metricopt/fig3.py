"""Figure 3 of MetricOpt: what the value function's training is made of, taken apart.

Each row leaves out or replaces one choice of the recipe. Source: Huang et al., CVPR
2021, Fig. 3; the rows beyond its ordinal term, sigma and offline training are ours.
"""

from dataclasses import replace
from typing import Any

from benchmarks.problems.tabular.tiers import A9A, DIGIT, SIZES, STEPS, convention
from benchmarks.report.layout import Block
from benchmarks.rows.contract import LOSS_ONLY, Row
from benchmarks.rows.controls import LOSS_ONLY_ROW, finetuned
from benchmarks.rows.metricopt import metricopt
from benchmarks.rows.post_hoc import THRESHOLD_SHIFT
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

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


def _row(
    name: str,
    label: str,
    recipe: dict[str, Any],
    method: str = "metricopt",
    note: str = "",
) -> Row:
    run = metricopt(method, recipe=recipe)
    base = (LOSS_ONLY,)
    return finetuned(name, label, family="metricopt", run=run, base=base, note=note)


def rows(tasks: int) -> tuple[Row, ...]:
    """Return the rows of the ablation, for so many tasks of meta-training."""
    offline = {"on_policy": 0.0, "block": tasks, "outer_rate": "constant"}
    literal = "metricopt-literal"
    return (
        *(_row(*change) for change in CHANGES),
        _row(
            "offline",
            "offline, off-policy",
            offline,
            note="trained on all loss trajectories at once, without Reptile",
        ),
        _row(
            "native-step",
            "steps in native units",
            LITERAL_TO_OURS,
            literal,
            "the recipe's value function with the steps of the literal row",
        ),
        _row("literal", "Algorithm 1, literal", {}, literal),
    )


def fig3(tier: str) -> Table:
    """Return the ablation at a tier."""
    tasks = TASKS[tier]
    size = replace(
        SIZES[tier], tasks=tasks, literal_tasks=tasks, replicates=REPLICATES[tier]
    )
    problem = (DIGIT if tier == "smoke" else A9A).at(tier, size=size)
    ablation = rows(tasks)
    shown = (LOSS_ONLY_ROW, THRESHOLD_SHIFT, *ablation)
    metrics = [Unit(name) for name in METRICS[tier]]
    return table(
        [Place("balanced", problem, metric, rows=shown) for metric in metrics],
        title="Figure 3: the value function taken apart",
        caption=(
            f"{tasks} tasks of T = {STEPS} steps with K = 3 queries each. Every row "
            "differs from the recipe only in what its name says."
        ),
        convention=convention([problem]),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        columns=tuple(column_of(problem, metric) for metric in metrics),
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        query_budgets=(),
        rival_row="recipe",
        ablation_rows=tuple(row.name for row in ablation),
        cloud_rows=("recipe", "no-ordinal"),
        notes=(
            "The paper's Fig. 3 is on CIFAR-10. This figure repeats it on A9A; figs4 "
            "repeats it on CIFAR-10.",
            "There are fewer tasks than in Table 3: with little training, differences "
            "between recipes are easier to see and cheaper to measure.",
            "In the paper's Fig. 3 the ordinal term and the uncertainty give a gain.",
        ),
    )


EXPERIMENTS.register("fig3")(experiment_of("fig3", fig3))

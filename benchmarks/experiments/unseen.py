"""Black boxes that no statistic was made for, on A9A: identified or not? Ours.

What counts is whether the value function predicts a metric before it is queried, after
how many queries, what is gained, and how many networks are handed over as they were.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import A9A, DIGIT, convention
from benchmarks.experiments.shared.unseen_metrics import (
    BUDGETS,
    CAPTION,
    NOTES,
    QUERY_ARMS,
    ROWS,
    black_boxes,
    columns,
    plans,
)
from benchmarks.problems.tabular.tiers import SIZES, STEPS, tabular_pipeline
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.spec import RunSpec

PROBLEMS = {"paper": A9A, "local": A9A, "smoke": DIGIT}


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    problem = PROBLEMS[tier]
    data = problem.here(offline)
    pipeline = tabular_pipeline(tier, data, "balanced", offsets=True)
    rows = on_pipeline(pipeline, plans(tier), with_offsets=pipeline)
    parts = [
        Part("balanced", f"{problem.name}/{box.name}", box.unit, STEPS, rows)
        for box in black_boxes(tier, classes=2)
    ]
    count = replicates or SIZES[tier].replicates
    return table_specs("unseen", tier, parts, replicates=count)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like at a tier."""
    problem = PROBLEMS[tier]
    return TableLayout(
        experiment="unseen",
        title="Black boxes that no statistic was made for",
        caption=(
            "MLP 100-30-10-1, d = 16 dynamic input biases and an output offset, "
            f"T = {STEPS}. {CAPTION}"
        ),
        convention=convention([problem]),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        rows=ROWS,
        columns=columns(problem, black_boxes(tier, classes=2)),
        untouched_row="cross-entropy",
        query_budgets=BUDGETS,
        query_arms=QUERY_ARMS,
        notes=(
            *NOTES,
            "Left out: with two classes the mean of the two worst recalls is balanced "
            "accuracy, and the mean reciprocal rank is half of 1 plus the accuracy.",
        ),
    )


EXPERIMENTS.register("unseen")(Experiment("unseen", layout, specs))

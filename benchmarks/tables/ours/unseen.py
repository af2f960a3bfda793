"""Black boxes that no statistic was made for, on A9A: identified or not? Ours.

What counts is whether the value function predicts a metric before it is queried, after
how many queries, what is gained, and how many networks are handed over as they were.
"""

from dataclasses import replace

from benchmarks.problems.tabular.tiers import A9A, DIGIT, SIZES, STEPS, convention
from benchmarks.report.layout import Block
from benchmarks.tables.ours import black_boxes
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table


def unseen(tier: str) -> Table:
    """Return the table of black boxes at a tier."""
    size = replace(SIZES[tier], queries=black_boxes.QUERIES[tier], search_tests=1)
    problem = (DIGIT if tier == "smoke" else A9A).at(tier, size=size, offsets=True)
    boxes = black_boxes.black_boxes(tier, classes=2)
    return table(
        [
            Place(
                "balanced",
                problem,
                box.unit,
                f"{problem.name}/{box.name}",
                rows=black_boxes.rows(tier),
                asks=black_boxes.ASKS,
            )
            for box in boxes
        ],
        title="Black boxes that no statistic was made for",
        caption=(
            "MLP 100-30-10-1, d = 16 dynamic input biases and an output offset, "
            f"T = {STEPS}. {black_boxes.CAPTION}"
        ),
        convention=convention([problem]),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        columns=black_boxes.columns(problem, boxes),
        untouched_row="cross-entropy",
        query_budgets=black_boxes.BUDGETS,
        notes=(
            *black_boxes.NOTES,
            "Left out: with two classes the mean of the two worst recalls is balanced "
            "accuracy, and the mean reciprocal rank is half of 1 plus the accuracy.",
            "With 15 queries the calibration error is identified in two replicates of "
            "five; all other metrics in every replicate after about 9.",
            "On random costs 3 and 4 CMA-ES needs 50 to 150 queries; on accuracy "
            "above a confidence it is still behind with 150.",
        ),
    )


EXPERIMENTS.register("unseen")(experiment_of("unseen", unseen))

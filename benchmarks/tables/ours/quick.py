"""The first look: a small comparison on data that scikit-learn brings along.

Handwritten digits, 8 against the rest, with a network trained briefly on class-balanced
mini-batches: cross-entropy then calls too many digits an 8, and F suffers. And all ten
digits with a convolutional network and FiLM, trained where high digits are rare.
"""

from dataclasses import replace

from benchmarks.problems.images.tiers import ImageSize, TrainedNetwork, images
from benchmarks.problems.problem import Problem
from benchmarks.problems.tabular import tiers as tabular
from benchmarks.report.layout import Block
from benchmarks.rows import controls, post_hoc
from benchmarks.rows.metricopt import METRICOPT
from benchmarks.rows.on_outputs import OURS
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

QUERIES = 750
SIZE = tabular.TabularSize(
    replicates=5, meta_tests=5, tasks=240, queries=QUERIES, metricopt_queries=QUERIES
)
DIGITS, TUMOURS = replace(tabular.DIGIT, epochs=4), replace(tabular.CANCER, epochs=10)
TAIL = replace(images("digits-tail", "digits", imbalance=10), reach=2.0)

ROWS = (
    controls.CROSS_ENTROPY,
    controls.LOSS_ONLY_ROW,
    *controls.SEARCHES,
    METRICOPT,
    post_hoc.THRESHOLD_SHIFT,
    replace(post_hoc.CLASS_OFFSETS, compared=False, note=""),
    replace(post_hoc.PRIOR_CORRECTION, compared=False),
    OURS,
)


def quick(tier: str) -> Table:
    """Return the first look; tiers differ in nothing but the pre-training."""
    binary = [problem.at(tier, size=SIZE) for problem in (DIGITS, TUMOURS)]
    tail = TAIL.at(
        tier,
        size=SIZE,
        network=TrainedNetwork("digit-net"),
        finetuning=ImageSize(examples=1_000, batch_size=64),
    )
    columns: list[tuple[Problem, str]] = [
        (binary[0], "mcr"),
        (binary[0], "f1"),
        (binary[1], "f1"),
        (tail, "f-macro"),
    ]
    return table(
        [_place(problem, Unit(name)) for problem, name in columns],
        order=ROWS,
        title="A first look, on embedded data",
        caption=(
            f"MLP 100-30-10-1, d = 16 dynamic input biases, T = {tabular.STEPS}. "
            "digits-tail: two convolutions, FiLM with 32 scales and 32 shifts. At most "
            f"{QUERIES} metric queries per result, meta-training included. The limit "
            "does not hold for threshold shift and class offsets, which need scores "
            "anyway."
        ),
        convention=tabular.convention(binary),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        columns=(
            *(column_of(problem, Unit(name)) for problem, name in columns[:3]),
            column_of(tail, Unit("f-macro"), "digits-tail macro F"),
        ),
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        untouched_row="cross-entropy",
        query_budgets=(15, 50, 150, 500, QUERIES),
        notes=NOTES,
    )


def _place(problem: Problem, metric: Unit) -> Place:
    rows = tuple(row for row in ROWS if not row.why_not(problem, metric))
    return Place(
        "balanced", problem, metric, rows=rows, asks="the first look shows few rows"
    )


NOTES = (
    "digits-tail: from 0 to 9 the training digits get rarer, exponentially, up "
    "to 10 times. Observe and test are balanced; mini-batches are not.",
    "The observe splits are small (180 digits, 57 biopsies): a method that "
    "overfits them shows it here first.",
)

EXPERIMENTS.register("quick")(experiment_of("quick", quick))

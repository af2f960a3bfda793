"""Parts of tables: columns, places of few rows, fields of layouts, and notes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.problems.problem import FinetuningSize, Problem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows import controls
from benchmarks.rows.contract import Row
from benchmarks.runs.spec import Unit
from benchmarks.tables.table import Place, brief_rows, in_order

NATURAL = (Block("natural", "natural sampling"),)
"""The one block of tables on images."""
LABELS = {
    "mcr": "MCR",
    "jaccard": "JAC",
    "f1": "F",
    "g-mean": "G-mean",
    "aucpr-macro-logits": "AUCPR, raw outputs",
}
RECIPE_NOTE = (
    "MetricOpt replays earlier tasks and takes shorter steps than on A9A, because the "
    "recipe of A9A had made the error worse on observe and on test. Both changes were "
    "chosen for worst-class error on observe only: one half was queried, the other "
    "half judged. Later, at tier local, candidate step lengths were added because "
    "observe had chosen the longest one; the test results of the smaller set had been "
    "seen by then."
)
SIZE_NOTE = (
    "Tier local: T = 100 and K = 5; the paper has T = 200 and K = 10. Fine-tuning "
    "takes its gradients on 10,000 training images without augmentation, so everything "
    "before FiLM is computed only once."
)
OFFSETS_NOTE = (
    "Rows from prior correction on search FiLM with an offset for every output, but "
    "for the one that says it has none. MetricOpt on outputs is run with five seeds."
)
UNTOUCHED = replace(
    controls.CROSS_ENTROPY,
    name="untouched",
    label="base loss, untouched (phi = 0)",
    paper={"Table 5": "", "Table 6": ""},
)
BASE_LOSS_ROWS = (
    UNTOUCHED,
    replace(controls.LOSS_ONLY_ROW, label="base loss fine-tune, last step"),
    replace(controls.DENSE, label="base loss fine-tune, dense eval", paper={}),
)
"""Rows of networks of several base losses: the paper's row begins with the name of the
loss, which the block puts there."""


def column_of(
    problem: Problem, metric: Unit, label: str = "", *, name: str = "", **more: Any
) -> Column:
    """Return the column of a problem and a metric.

    Args:
        problem: the problem.
        metric: the metric that is shown.
        label: as printed; empty for problem and metric.
        name: in records; empty for problem and metric.
        **more: further fields of `Column`.
    """
    known = LABELS.get(metric.label, metric.label)
    return Column(
        name or f"{problem.name}/{metric.label}",
        label or f"{problem.name} {known}",
        metric,
        test_per_train=problem.test_per_train,
        **more,
    )


def brief_place(
    block: str,
    problem: Problem,
    metric: Unit,
    *,
    also: tuple[Unit, ...],
    own: Sequence[Row],
    last: Sequence[Row] = (),
) -> Place:
    """Return a place where few rows stand for their families.

    Args:
        block: name of the block.
        problem: what rows are run on; its name is that of the column.
        metric: what their runs work towards.
        also: further metrics that results are judged by, which columns show.
        own: rows of the table that stand first in their families, the untouched
            network among them; rows of these names stand for the registered ones.
        last: rows of the table that stand last in their families.
    """
    brief = brief_rows(problem, metric, controls.CROSS_ENTROPY, *own)
    return Place(
        block,
        problem,
        metric,
        problem.name,
        rows=tuple(in_order([*own, *brief, *last])),
        asks="one row of a family stands for the others",
        also=also,
    )


def finetuning_fields(
    size: FinetuningSize, *budgets: int, untouched: str = "cross-entropy"
) -> dict[str, Any]:
    """Return fields of the layout of a table on fine-tuned networks.

    Args:
        size: of the tier.
        *budgets: queries at which rows are compared before the usual ones.
        untouched: name of the row of the untouched network.
    """
    usual = (q for q in (50, 150, 500, 1_500) if q < size.queries)
    return {
        "loss_only_row": "loss-only",
        "untouched_row": untouched,
        "rival_row": "loss-only-dense",
        "query_budgets": (*budgets, *usual, size.queries),
    }

"""The rows of tables on networks that FiLM alone moves: no output offset could."""

from dataclasses import replace
from typing import Any

from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.arms import FinetuningSize
from benchmarks.experiments.shared.image_arms import (
    DEVIATION,
    metricopt,
    oracle,
    query_budgets,
)
from benchmarks.experiments.shared.plans import Plan
from benchmarks.report.layout import Row, TableLayout, finetuned

UNTOUCHED, BASE, RIVAL = "untouched", "loss-only", "loss-only-dense"
QUERY_ARMS = (*arms.SEARCHES, "metricopt", "portfolio", outputs.OURS)
ROWS = (
    Row(UNTOUCHED, "base loss, untouched (phi = 0)", paper_row=""),
    finetuned(BASE, "base loss fine-tune, last step"),
    finetuned(RIVAL, "base loss fine-tune, dense eval", BASE),
    *outputs.search_rows(BASE),
    finetuned("metricopt", "MetricOpt (SGD)", BASE, "+metricopt"),
    *outputs.only(UNTOUCHED, "portfolio", outputs.OURS, "cma-es-no-harm"),
    outputs.ORACLE_ROW,
)


def plans(size: FinetuningSize) -> dict[str, Plan]:
    """Return how every row is filled, by row."""
    ours = replace(outputs.ours(offsets=False), meta_tests=size.seeds, pictured=True)
    no_harm = outputs.no_harm_plans(size.queries, deviation=DEVIATION)
    return {
        UNTOUCHED: arms.untouched(),
        BASE: arms.loss_only(size),
        RIVAL: arms.dense(size, size.steps),
        **arms.searches(size, size.queries, deviation=DEVIATION),
        "metricopt": replace(metricopt(size), pictured=True),
        "portfolio": replace(outputs.line_plans()["portfolio"], offsets=False),
        outputs.OURS: ours,
        "cma-es-no-harm": replace(no_harm["cma-es-no-harm"], offsets=False),
        "oracle-test": oracle("oracle", size),
    }


def table(size: FinetuningSize, **own: Any) -> TableLayout:
    """Return a layout with these rows, and fields of its own."""
    return TableLayout(
        rows=ROWS,
        loss_only_row=BASE,
        untouched_row=UNTOUCHED,
        rival_row=RIVAL,
        query_budgets=(outputs.QUERIES, *query_budgets(size)),
        query_arms=QUERY_ARMS,
        **own,
    )

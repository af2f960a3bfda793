"""Tables on networks of several base losses, which FiLM alone moves."""

from dataclasses import replace
from typing import Any

from benchmarks.problems.problem import FinetuningSize
from benchmarks.rows import controls
from benchmarks.tables.image_notes import query_budgets

PAPER = {"Table 5": "", "Table 6": ""}
"""The paper's rows of a base loss begin with its name, which the block puts there."""
UNTOUCHED = replace(
    controls.CROSS_ENTROPY,
    name="untouched",
    label="base loss, untouched (phi = 0)",
    paper=PAPER,
)
LAST_STEP = replace(controls.LOSS_ONLY_ROW, label="base loss fine-tune, last step")
DENSE = replace(controls.DENSE, label="base loss fine-tune, dense eval", paper={})
OWN = (UNTOUCHED, LAST_STEP, DENSE)
"""Rows that are called after the base loss here."""
ASKS = "one row of a family stands for the others"
CALLED_OTHERWISE = (controls.CROSS_ENTROPY, controls.LOSS_ONLY_ROW, controls.DENSE)


def layout_fields(size: FinetuningSize) -> dict[str, Any]:
    """Return fields of the layout that such tables have in common."""
    return {
        "loss_only_row": LAST_STEP.name,
        "untouched_row": UNTOUCHED.name,
        "rival_row": DENSE.name,
        "query_budgets": (15, *query_budgets(size)),
    }

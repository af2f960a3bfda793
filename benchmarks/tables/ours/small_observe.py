"""Situations with small observe splits, which the tables on harm have in common."""

from collections.abc import Mapping

from benchmarks.problems.tabular.tiers import Sampling
from benchmarks.report.layout import Block
from benchmarks.rows.controls import CMA_ES
from benchmarks.rows.no_harm import CMA_ES_NO_HARM
from benchmarks.rows.on_outputs import OURS

OBSERVED = (200, 500, 2_000)
"""Sizes of the observe split of sub-samples."""
WHOLE = 0
"""Stands for all examples of a data set instead of a sub-sample."""
BUDGETS = (15, 50, 150)
QUERIES = {"paper": 150, "local": 150, "smoke": 20}
"""Queries of CMA-ES, by tier."""
SAMPLING_LABELS: Mapping[Sampling, str] = {
    "balanced": "class-balanced mini-batches",
    "natural": "natural sampling",
}

SEARCHED = (OURS, CMA_ES, CMA_ES_NO_HARM)
"""Rows that search, all on an adapter with output offsets."""
ASKS = "this table asks what is handed over, with a check for harm and without"

CAPTION = "All rows that search do so on the same adapter. Every query counts."
NOTES = (
    "Look for `-`: a row that is worse on test than the untouched network. The figure "
    "of gain over size shows every column of every block: marks below 0 are harm.",
    "CMA-ES returns the best it queried, with or without evidence. With the check for "
    "harm it returns the untouched network where there is no evidence of a gain.",
    "Many cells have nothing to gain. There `=` and `?` are what to expect, and "
    "`Identified` tells how many networks were returned as they were.",
)


def block_of(sampling: Sampling, observed: int) -> Block:
    """Return the block of a sampling and a size of the observe split."""
    size = f"{observed:,} to observe" if observed else "all examples of small sets"
    name = f"{sampling}-{observed or 'whole'}"
    return Block(name, f"{size}, {SAMPLING_LABELS[sampling]}")

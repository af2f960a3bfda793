"""Situations with small observe splits, shared by the experiments on harm."""

from collections.abc import Mapping
from typing import Any

from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.plans import Plan
from benchmarks.problems.tabular.tiers import Sampling
from benchmarks.report.layout import Block, Row

OBSERVED = (200, 500, 2_000)
"""Sizes of the observe split of sub-samples."""
WHOLE = 0
"""Stands for all examples of a data set instead of a sub-sample."""
BUDGETS, QUERY_ARMS = (15, 50, 150), (outputs.OURS, "cma-es")
QUERIES = {
    "paper": outputs.RIVAL_QUERIES,
    "local": outputs.RIVAL_QUERIES,
    "smoke": 20,
}
"""Of CMA-ES, by tier."""
SAMPLING_LABELS: Mapping[Sampling, str] = {
    "balanced": "class-balanced mini-batches",
    "natural": "natural sampling",
}

UNTOUCHED = Row("cross-entropy", "CE, untouched (phi = 0)")
SEARCHED = (
    *(row for row in outputs.rows(outputs.OURS) if row.name == outputs.OURS),
    *(row for row in outputs.search_rows("cross-entropy") if row.name == "cma-es"),
    *outputs.rows("cma-es-no-harm"),
)
"""Rows that search, all on an adapter with output offsets."""

CAPTION = "All rows that search do so on the same adapter. Every query counts."
NOTES = (
    "Look for `-`: a row that is worse on test than the untouched network. The figure "
    "of gain over size shows every column of every block: marks below 0 are harm.",
    "CMA-ES returns the best it queried, with or without evidence. With the check for "
    "harm it returns the untouched network where there is no evidence of a gain.",
    "Many cells have nothing to gain. There `=` and `?` are what to expect, and "
    "`Identified` tells how many networks were returned as they were.",
)


def plans(tier: str, tests: int = 1, **settings: Any) -> dict[str, Plan]:
    """Return how the rows of a column are filled, but for post-hoc shifts.

    Args:
        tier: decides the queries of CMA-ES.
        tests: repetitions within a run.
        **settings: of CMA-ES.
    """
    queries = QUERIES[tier]
    found = arms.searches(arms.Size(), queries, **settings)
    found |= outputs.no_harm_plans(queries, **settings)
    found[outputs.OURS] = outputs.ours()
    kept = {row.name: found[row.name] for row in SEARCHED}
    return outputs.beside_offsets(kept, tests)


def block_name(sampling: Sampling, observed: int) -> str:
    """Return the name of the block of a sampling and a size of the observe split."""
    return f"{sampling}-{observed or 'whole'}"


def block_of(sampling: Sampling, observed: int) -> Block:
    """Return the block of a sampling and a size of the observe split."""
    size = f"{observed:,} to observe" if observed else "all examples of small sets"
    label = f"{size}, {SAMPLING_LABELS[sampling]}"
    return Block(block_name(sampling, observed), label)

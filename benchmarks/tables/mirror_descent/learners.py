"""What tables of few-shot learners have in common: places, columns, words."""

from collections.abc import Sequence
from typing import Any

from benchmarks.problems.episodes.pipeline import learner_of
from benchmarks.problems.episodes.tiers import EpisodeProblem
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row
from benchmarks.runs.notes import TASK_DIVERGED
from benchmarks.runs.spec import Unit
from benchmarks.tables.table import Place

BLOCK = Block("new-tasks", "new tasks")
FIELDS: dict[str, Any] = {
    "blocks": (BLOCK,),
    "query_budgets": (),
    "network_of": learner_of,
}
"""Fields of the layout of every such table."""
AGAINST = ("maml", "meta-sgd", "maml-wider")
"""Rows that learned geometries are compared with on images."""
ASKS = "is not one of the learners of few-shot tasks compared here"
LIKE_FOR_LIKE = (
    "All learners of a column have the same network, first weights, tasks, inner "
    "steps, meta-optimizer and meta-iterations. Their maps are the identity at first, "
    "so all begin as MAML does. The state of the best validation is kept."
)
RATE_NOTE = (
    "Every learner with a map had three short trainings for the rate of its map: 1, .1 "
    "and .01 of the rate of the start, 233 meta-iterations each, judged on validation "
    "of the first replicate of the first column at tier local. Linear maps kept 1; "
    "blockIAF mended and the exact potential got .01, in all columns and at all tiers. "
    "blockIAF as released has 1, as in its code."
)
MENDED_NOTE = (
    "blockIAF is the map of the poster, Zhang, Li, Giannakis, ICASSP 2024. As released "
    "by its authors, its scale is an exponential, and most heads of its network never "
    "move from what they are at first. Mended, the scale is bounded, 2 sigmoid, every "
    "layer is a block of its own, and all heads learn."
)
WIDER_NOTE = (
    "The wider MAML has more channels, so that it has as many weights as blockIAF has "
    "meta-parameters, within 5 %: it tells capacity from geometry."
)
CLIP_NOTE = (
    "Meta-gradients are clipped to a norm of 10. The released code of the poster does "
    "not clip them; MAML's clips every element."
)


def place(problem: EpisodeProblem, metric: str, rows: Sequence[Row]) -> Place:
    """Return where some learners are run on a problem."""
    return Place(
        BLOCK.name,
        problem,
        Unit(metric),
        problem.name,
        rows=tuple(rows),
        asks=ASKS,
        also=(Unit(TASK_DIVERGED),),
    )


def caption(problems: Sequence[EpisodeProblem]) -> str:
    """Return what networks learned, how long, and how they are judged."""
    return " ".join(map(_sentence, problems))


def _sentence(problem: EpisodeProblem) -> str:
    learning = problem.learning
    training, network = learning.training, learning.network
    shrunk = f" after averaging {network.shrink} x {network.shrink} pixels"
    inner = problem.inner.get("rate", 0.01)
    return (
        f"{label(problem)}: conv-4 with {network.channels} channels"
        f"{shrunk if network.shrink > 1 else ''}, {training.iterations:,} "
        f"meta-iterations of {training.episodes} tasks with "
        f"{learning.episodes.queries} queries of a class, Adam "
        f"{training.rate:g} ({training.schedule}), 5 inner steps of rate {inner:g}; "
        f"{problem.tests} new tasks with "
        f"{learning.episodes.queries_of('test')} queries of a class."
    )


def label(problem: EpisodeProblem) -> str:
    """Return the name of a problem as printed."""
    data, _, kind = problem.name.partition("/")
    ways, _, shots, _ = kind.split("-")
    return f"{data} {ways}-way {shots}-shot"

"""How learners adapt to new tasks, over 0 to 100 inner steps. The poster's figures.

Source: Zhang, Li, Giannakis, ICASSP 2024, the poster's figures of convergence. Differs:
query accuracy stands beside support loss and gradient norm, as a lower support loss
need not be a better learner.
"""

from dataclasses import replace

from benchmarks.problems.episodes.metrics import ACCURACY
from benchmarks.problems.episodes.tiers import EpisodeProblem, images
from benchmarks.report.columns import Column
from benchmarks.report.layout import OverTasks
from benchmarks.rows.learners import GEOMETRIES, LEARNED, WIDER
from benchmarks.runs.spec import RunSpec, Unit
from benchmarks.tables.mirror_descent.learners import (
    FIELDS,
    LIKE_FOR_LIKE,
    MENDED_NOTE,
    RATE_NOTE,
    caption,
    label,
    place,
)
from benchmarks.tables.registry import EXPERIMENTS, Experiment
from benchmarks.tables.table import Table, experiment_of, table

STEPS = 100
TESTS = {"paper": 600, "local": 30, "smoke": 2}
"""New tasks by tier."""
ROWS = tuple(row for row in LEARNED if row != WIDER)
"""A hundred steps of the wider network take as long as those of all others."""
NOTES = (
    LIKE_FOR_LIKE,
    MENDED_NOTE,
    RATE_NOTE,
    "Learners are those of `few-shot`, meta-trained for 5 inner steps. Nothing trained "
    "them for later steps.",
)


def few_shot_convergence(tier: str) -> Table:
    """Return the table at a tier: accuracy after the last inner step."""
    steps = 6 if tier == "smoke" else STEPS
    problems = [each.tested_on(TESTS[tier], steps) for each in images(tier)]
    return table(
        [place(problem, ACCURACY, ROWS) for problem in problems],
        title="Convergence on new tasks with learned loss geometries",
        caption=caption(problems),
        convention=f"Cells: query accuracy after {steps} inner steps.",
        columns=tuple(_column(problem) for problem in problems),
        over_tasks=OverTasks(GEOMETRIES, ("maml", "meta-sgd"), reach="maml"),
        notes=NOTES,
        **FIELDS,
    )


def _column(problem: EpisodeProblem) -> Column:
    return Column(problem.name, label(problem), Unit(ACCURACY))


def _pictured(found: Experiment) -> Experiment:
    """Return the experiment with notes in every run of how it adapts."""

    def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
        every = found.specs(tier, replicates, offline)
        return [replace(spec, pictured=True) for spec in every]

    return replace(found, specs=specs)


EXPERIMENTS.register("few-shot-convergence")(
    _pictured(experiment_of("few-shot-convergence", few_shot_convergence))
)

"""Regression on sine waves: the test of the poster's geometry that takes minutes.

Source: Finn et al., ICML 2017, Sec. 5.1, with five inner steps in training.
"""

from dataclasses import replace

from benchmarks.problems.episodes.metrics import ERROR
from benchmarks.problems.episodes.tiers import EpisodeProblem, sine
from benchmarks.report.columns import Column
from benchmarks.report.layout import OverTasks
from benchmarks.rows.contract import Row
from benchmarks.rows.learners import (
    MAML,
    META_SGD,
    SINE_GEOMETRIES,
    learner,
)
from benchmarks.runs.spec import Unit
from benchmarks.tables.mirror_descent.learners import (
    CLIP_NOTE,
    FIELDS,
    LIKE_FOR_LIKE,
    place,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Table, experiment_of, table

STEPS = (5, 10)
"""Inner steps on new waves; in meta-training there are 5."""
MARGIN = 1e-4
"""Least difference that matters, .01, as a share of the range of errors."""
RATES = (0.005, 0.02, 0.05)
"""Other inner rates of MAML."""


def _maml(rate: float) -> Row:
    text = f"{rate:g}".lstrip("0")
    return learner(f"maml-rate-{rate:g}", f"MAML, rate {text}", "maml", {"rate": rate})


OTHER_RATES = tuple(map(_maml, RATES))
ROWS = (
    replace(MAML, base=(), label="MAML, rate .01"),
    *OTHER_RATES,
    META_SGD,
    *SINE_GEOMETRIES,
)


def sines(tier: str) -> Table:
    """Return the table at a tier."""
    problems = [sine(tier, steps) for steps in STEPS]
    training = problems[0].learning.training
    return table(
        [place(problem, ERROR, ROWS) for problem in problems],
        title="Sine waves with learned loss geometries",
        caption=(
            f"MLP 1-40-40-1, ten points of a wave to adapt to and ten others to judge; "
            f"{training.iterations:,} meta-iterations of {training.episodes} waves, "
            f"Adam {training.rate:g}; {problems[0].tests} new waves."
        ),
        convention="Mean squared error at other points of a wave, at most 100.",
        columns=tuple(map(_column, problems)),
        over_tasks=OverTasks(
            tuple(row.name for row in SINE_GEOMETRIES), ("maml", "meta-sgd")
        ),
        notes=(LIKE_FOR_LIKE, CLIP_NOTE),
        **FIELDS,
    )


def _column(problem: EpisodeProblem) -> Column:
    name = f"error after {problem.steps} steps"
    return Column(problem.name, name, Unit(ERROR), margin=MARGIN)


EXPERIMENTS.register("sine")(experiment_of("sine", sines))

"""Learners of few-shot tasks: what is meta-learned, and what is not."""

from collections.abc import Callable
from typing import Any

from benchmarks.problems.episodes.tiers import EpisodeProblem
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import Row, Run, always
from benchmarks.runs.spec import Arm, Settings, Unit

POSTER = "Mirror descent, Table 1"
"""Name of the poster's table among the published numbers."""


def _adapted(problem: Problem, metric: Unit) -> Run:
    assert isinstance(problem, EpisodeProblem)
    learner = problem.learning.learner
    assert learner is not None
    steps = {} if problem.steps is None else {"steps": problem.steps}
    return Run(Arm("learner", learner.name, steps), meta_tests=problem.tests)


def _learned_by(
    name: str, settings: Settings, *, wider: bool = False
) -> Callable[[Problem], Problem]:
    def on(problem: Problem) -> Problem:
        assert isinstance(problem, EpisodeProblem)
        found = problem.widened() if wider else problem
        return found.learned_by(name, settings)

    return on


def learner(
    row: str,
    label: str,
    name: str,
    settings: Settings | None = None,
    *,
    wider: bool = False,
    **more: Any,
) -> Row:
    """Return the row of a meta-trained learner.

    Args:
        row: name of the row.
        label: as printed.
        name: the registered learner.
        settings: changes to what all learners of a problem share.
        wider: whether its network has as many weights as blockIAF meta-parameters.
        **more: further fields of the row.
    """
    known = {"base": ("maml",), "same_starts": True, "compared": False}
    return Row(
        row,
        label,
        "learners",
        run=_adapted,
        on=_learned_by(name, settings or {}, wider=wider),
        **{**known, **more},
    )


NEAREST_CLASS_MEAN = Row(
    "nearest-class-mean",
    "nearest class mean of raw inputs",
    "learners",
    run=always(Run(Arm("nearest-class-mean"))),
    same_starts=True,
    compared=False,
    is_primary=True,
)
MAML = learner(
    "maml",
    "MAML",
    "maml",
    base=("nearest-class-mean",),
    paper={POSTER: "maml"},
    is_primary=True,
)
FIRST_ORDER = learner("maml-first-order", "MAML, first order", "maml-first-order")
WIDER = learner(
    "maml-wider", "MAML, as many meta-parameters as blockIAF", "maml", wider=True
)
META_SGD = learner("meta-sgd", "Meta-SGD", "meta-sgd", paper={POSTER: "meta-sgd"})
BLOCK_DIAGONAL = learner(
    "block-diagonal",
    "block-diagonal (MT-net without mask)",
    "block-diagonal",
    paper={POSTER: "mt-net"},
)
META_CURVATURE = learner(
    "meta-curvature",
    "Meta-Curvature",
    "meta-curvature",
    paper={POSTER: "meta-curvature"},
)
MIRROR_DESCENT = learner(
    "mirror-descent",
    "mirror descent, blockIAF mended",
    "mirror-descent",
    {"geometry_rate": 0.01},
    paper={POSTER: "mirror-descent"},
)
RELEASED = learner(
    "mirror-descent-released",
    "mirror descent, blockIAF as released",
    "mirror-descent-released",
)
EXACT_POTENTIAL = learner(
    "exact-potential",
    "mirror descent, exact potential (ours)",
    "exact-potential",
    {"geometry_rate": 0.01, "rank": 16},
)
"""W has 64 rows by default, which would be two million numbers on images."""

ONE_BLOCK = learner(
    "one-block",
    "mirror descent, one block (Meta-SGD with a shift)",
    "mirror-descent",
    {"tensors": 6},
)
BLOCK_IAF_EXP = learner(
    "block-iaf-exp",
    "mirror descent, blockIAF of layers, exp",
    "mirror-descent",
    {"tensors": 2, "scale": "exp"},
)
BLOCK_IAF = learner(
    "block-iaf",
    "mirror descent, blockIAF of layers, 2 sigmoid",
    "mirror-descent",
    {"tensors": 2},
)
SINE_POTENTIAL = learner("exact-potential", EXACT_POTENTIAL.label, "exact-potential")
SINE_GEOMETRIES = (ONE_BLOCK, BLOCK_IAF_EXP, BLOCK_IAF, SINE_POTENTIAL)
"""Learned geometries on the MLP of sine waves, which has a weight and a bias a layer.
"""

LEARNED = (
    MAML,
    FIRST_ORDER,
    WIDER,
    META_SGD,
    BLOCK_DIAGONAL,
    META_CURVATURE,
    MIRROR_DESCENT,
    RELEASED,
    EXACT_POTENTIAL,
)
"""All meta-trained learners."""
GEOMETRIES = ("mirror-descent", "mirror-descent-released", "exact-potential")
"""Names of the rows with a learned geometry of the poster's kind."""

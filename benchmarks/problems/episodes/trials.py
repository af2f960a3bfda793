"""Short meta-trainings by which learners get the rate of their map, on validation.

Every learner with a map has the same three, but for blockIAF as released, whose code
has one rate for all. MAML has one, to compare with. A trial lasts a third of the
iterations, on the first replicate of one problem, and what is chosen there serves all
problems. What each reached is a line of a file; what is chosen stands in
`benchmarks.rows.learners`, and a test compares both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from benchmarks.problems.episodes.learner_spec import LearnerSpec
from benchmarks.problems.episodes.tiers import images
from benchmarks.problems.pretrained.trial_file import TrialFile, reached
from benchmarks.runs.spec import Settings

FILE = TrialFile("few-shot")
SHARE = 3
"""A trial lasts one meta-iteration in so many."""
USUAL, FACTORS = 1.0, (1.0, 0.1, 0.01)
"""Rate of the map that is tried, in units of the rate of the start."""
CHANCE = 0.01
"""Accuracies that differ by no more on the episodes to validate are called equal."""
MAPS: Mapping[str, Settings] = {
    "meta-sgd": {},
    "block-diagonal": {},
    "meta-curvature": {},
    "mirror-descent": {},
    "exact-potential": {"rank": 16},
}
"""Learners with a map that are tried, and their settings."""
KEPT = ("score", "seconds", "environment")
"""What is kept of a trial, of the facts of its meta-training."""


@dataclass(frozen=True)
class Trial:
    """A short meta-training.

    Attributes:
        learner: name of the learner.
        factor: what is tried.
        network: what trains.
    """

    learner: str
    factor: float
    network: LearnerSpec

    @property
    def line(self) -> str:
        """What is kept of it: the score on validation, time and machine."""
        settings = {"learner": self.learner, "geometry_rate": self.factor}
        return reached(self.network, settings, KEPT, {"score": 0.0})


def trials(tier: str = "local") -> list[Trial]:
    """Return the trials of all learners with a map, on the first problem of a tier."""
    problem = images(tier)[0]
    whole = problem.learning.training
    short = replace(whole, iterations=max(1, whole.iterations // SHARE))
    learning = replace(problem.learning, training=short)
    problem = replace(problem, learning=learning)

    def trial(name: str, factor: float) -> Trial:
        own = {} if factor == USUAL else {"geometry_rate": factor}
        learned = problem.learned_by(name, {**MAPS.get(name, {}), **own}).learning
        return Trial(name, factor, LearnerSpec(learned, 0))

    every = [trial(name, factor) for name in MAPS for factor in FACTORS]
    return [*every, trial("maml", USUAL)]


def best(learner: str, tried: Sequence[Mapping[str, Any]]) -> float:
    """Return the factor of a learner: the usual one unless another is better."""
    scores = {
        line["geometry_rate"]: line["score"]
        for line in tried
        if line["learner"] == learner
    }
    factor, score = max(scores.items(), key=itemgetter(1))
    return factor if score > scores[USUAL] + CHANCE else USUAL

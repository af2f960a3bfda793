"""How a learner is meta-trained, and what happened on the way."""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from metricopt.errors import (
    require_choice,
    require_counts,
    require_given,
    require_ranges,
)
from metricopt.fewshot.meta_learner import MetaLearner

Batching = Literal["loop", "vmap"]
"""Whether episodes are adapted to one by one, or all at once."""
MetaOptimizer = Literal["adam", "sgd"]
RateSchedule = Literal["constant", "cosine", "steps"]
MOMENTUM = 0.9


@dataclass(frozen=True, kw_only=True)
class MetaTraining:
    """How a learner is meta-trained.

    The defaults are those of the released code of Zhang et al., arXiv 2312.13486, for
    Omniglot, but for the clipping, which it has not.

    Attributes:
        iterations: meta-iterations R, each a step of the meta-optimizer.
        episodes: episodes of an iteration.
        optimizer: "adam", or "sgd" with Nesterov's momentum 0.9.
        rate: greatest rate of the meta-optimizer.
        geometry_rate: factor of the rate for the weights of the map. All of phi moves
            with each of them, so that the rate of the start may be too much for them.
        schedule: course of the rate. "constant"; "cosine": down to 0; "steps": divided
            by 10 after each third of the iterations.
        weight_decay: factor of half the squared meta-parameters, whose gradient is
            added to the clipped meta-gradient; no loss that is reported has them.
        clip: largest norm of the whole meta-gradient; longer ones are scaled down.
        validate_every: iterations between two validations; the last one is validated
            in any case.
        batching: whether an iteration works through its episodes in a "loop", or on
            all at once by "vmap". See docs/few-shot.md for what is faster where.
        save_every: seconds between two states on disk; 0 for one every iteration.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    iterations: int = 60_000
    episodes: int = 4
    optimizer: MetaOptimizer = "adam"
    rate: float = 1e-3
    geometry_rate: float = 1.0
    schedule: RateSchedule = "constant"
    weight_decay: float = 0.0
    clip: float = 10.0
    validate_every: int = 2_000
    batching: Batching = "loop"
    save_every: float = 10.0

    def __post_init__(self) -> None:
        require_given("meta-training", vars(self))
        counts = ("iterations", "episodes", "validate_every")
        require_counts("meta-training", vars(self), *counts)
        require_ranges(
            "meta-training",
            vars(self),
            rate="in (0, inf)",
            geometry_rate="in (0, inf)",
            weight_decay="in [0, inf)",
            clip="> 0",
            save_every=">= 0",
        )
        require_choice("optimizer", self.optimizer, MetaOptimizer)
        require_choice("schedule", self.schedule, RateSchedule)
        require_choice("batching", self.batching, Batching)

    def numbers(self, iteration: int) -> range:
        """Return the numbers of the episodes of an iteration, counted from 0."""
        first = iteration * self.episodes
        return range(first, first + self.episodes)

    def rate_at(self, iteration: int) -> float:
        """Return the rate of an iteration, counted from 0."""
        if self.schedule == "cosine":
            done = iteration / self.iterations
            return self.rate * (1 + math.cos(math.pi * done)) / 2
        thirds = 3 * iteration // self.iterations if self.schedule == "steps" else 0
        return self.rate / float(10**thirds)

    def make_optimizer(self, learner: MetaLearner) -> torch.optim.Optimizer:
        """Return the meta-optimizer; its groups have the `factor` of their rate."""
        of_map = set(learner.geometry.parameters())
        learned = [each for each in learner.parameters() if each.requires_grad]
        groups = [
            {"params": [w for w in learned if w not in of_map], "factor": 1.0},
            {
                "params": [w for w in learned if w in of_map],
                "factor": self.geometry_rate,
            },
        ]
        decay = self.weight_decay
        if self.optimizer == "adam":
            return torch.optim.Adam(groups, self.rate, weight_decay=decay)
        return torch.optim.SGD(
            groups, self.rate, MOMENTUM, weight_decay=decay, nesterov=True
        )


@dataclass(frozen=True)
class MetaTrained:
    """What happened in a meta-training.

    Attributes:
        losses: mean query loss of every iteration before its step, as it was: also
            where it was not finite.
        gradient_norms: norm of every meta-gradient before it was clipped.
        skipped: iterations without a step, since their meta-gradient was not finite.
        validations: score by the number of iterations done.
        kept: iterations after which the returned state was reached.
        seconds: time spent, in all calls that the training took.
    """

    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    skipped: tuple[int, ...]
    validations: dict[int, float]
    kept: int
    seconds: float

"""How the learners of a problem are meta-trained: all of them alike."""

from dataclasses import dataclass

from metricopt.errors import require_counts
from metricopt.fewshot.settings import (
    Batching,
    MetaOptimizer,
    MetaTraining,
    RateSchedule,
)


@dataclass(frozen=True, kw_only=True)
class MetaSettings:
    """What decides a meta-training besides learner, network and episodes.

    Attributes:
        iterations: meta-iterations.
        episodes: episodes of an iteration.
        rate: greatest rate of the meta-optimizer.
        optimizer: see `metricopt.fewshot.MetaTraining`, as of the next two.
        schedule: course of the rate.
        batching: how an iteration works through its episodes.
        validations: how often the learner is validated; the best state is kept.
        validated: episodes to validate on.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    iterations: int
    episodes: int = 4
    rate: float = 1e-3
    optimizer: MetaOptimizer = "adam"
    schedule: RateSchedule = "cosine"
    batching: Batching = "loop"
    validations: int = 10
    validated: int = 100

    def __post_init__(self) -> None:
        require_counts("meta-training", vars(self), "validations", "validated")
        self.training()

    def training(self) -> MetaTraining:
        """Return the settings of the library."""
        return MetaTraining(
            iterations=self.iterations,
            episodes=self.episodes,
            optimizer=self.optimizer,
            rate=self.rate,
            schedule=self.schedule,
            batching=self.batching,
            validate_every=max(1, -(-self.iterations // self.validations)),
        )

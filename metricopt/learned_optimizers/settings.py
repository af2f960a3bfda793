"""How an optimizer is meta-trained, and what happened on the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from metricopt.errors import (
    ConfigError,
    require_choice,
    require_counts,
    require_given,
    require_kind,
    require_ranges,
)
from metricopt.learned_optimizers.objective import Objective

Estimator = Literal["strategies", "persistent", "through-steps", "merged"]
"""How the gradient of the smoothed objective, eq. (7), is estimated.

"strategies": evolution strategies, with one noise a task. "persistent": with a new
noise in every window. "through-steps": back-propagation through the unrolled steps.
"merged": the first and the third of the same runs, weighted by their variances.
"""
Order = Literal["first", "full"]


@dataclass(frozen=True, kw_only=True)
class OptimizerTraining:
    """How an optimizer is meta-trained; runs are as long as its horizon T.

    Attributes:
        iterations: batches of new tasks.
        tasks: tasks of an iteration.
        pairs: antithetic pairs P of every task.
        estimator: how the meta-gradient is estimated.
        deviation: s of the smoothing, > 0; or 0, which is for "through-steps" alone:
            one run of every task, without noise.
        window: steps after which the weights are updated, and the graph is cut; None
            for whole runs.
        order: whether back-propagation takes "full" derivatives, or gradients and
            metrics that the optimizer sees are constants ("first"), which biases it.
        objective: what a run is judged by.
        rate: rate of Adam on the weights.
        clip: greatest norm of a meta-gradient; longer ones are scaled down.
        first_steps: length of the first runs.
        lengthening: share of the iterations in which runs grow linearly to T.
        validate_every: iterations between two validations.
        seed: seed of the noise.
        save_every: seconds between two states on disk; 0 for one every iteration.

    Raises:
        ConfigError: if a setting is out of its range, or two do not go together.

    Source: Huang et al., CVPR 2021, supplement B. Differs: evolution strategies alone,
    with a deviation of 0.01, are the default; the paper merges, with a variance of
    0.01. Metz et al., arXiv 1810.10180, lengthen the windows instead of the runs.
    """

    iterations: int = 5_000
    tasks: int = 2
    pairs: int = 4
    estimator: Estimator = "strategies"
    deviation: float = 0.01
    window: int | None = None
    order: Order = "full"
    objective: Objective = field(default_factory=Objective)
    rate: float = 1e-3
    clip: float = 1.0
    first_steps: int = 20
    lengthening: float = 0.2
    validate_every: int = 50
    seed: int = 0
    save_every: float = 10.0

    def __post_init__(self) -> None:
        self._check_ranges()
        require_kind("objective", self.objective, Objective, "an Objective(...)")
        if self.deviation == 0 and self.estimator != "through-steps":
            raise ConfigError(
                f"the estimator {self.estimator!r} needs deviation > 0, got "
                "deviation=0: only 'through-steps' works without noise"
            )
        if self.estimator == "merged" and self.window is not None:
            raise ConfigError(
                "the estimator 'merged' needs window=None, got "
                f"window={self.window}: cut runs would bias one of the two"
            )
        if self.estimator == "persistent" and self.window is None:
            raise ConfigError("the estimator 'persistent' needs a window, got None")
        if self.estimator == "merged" and self.tasks * self.pairs < 2:
            raise ConfigError(
                "the estimator 'merged' needs two pairs in all to know a variance, got "
                f"tasks={self.tasks} and pairs={self.pairs}"
            )

    def _check_ranges(self) -> None:
        require_given("meta-training", vars(self), "window")
        counts = ("iterations", "tasks", "pairs", "first_steps", "window")
        require_counts("meta-training", vars(self), *counts, "validate_every")
        require_ranges(
            "meta-training",
            vars(self),
            deviation=">= 0",
            rate="> 0",
            clip="> 0",
            lengthening=">= 0",
            save_every=">= 0",
        )
        require_choice("estimator", self.estimator, Estimator)
        require_choice("order", self.order, Order)

    @property
    def copies(self) -> int:
        """Copies of the optimizer on every task."""
        return 2 * self.pairs if self.deviation else 1

    def numbers(self, iteration: int) -> range:
        """Return the numbers of the tasks of an iteration, counted from 0."""
        return range(iteration * self.tasks, (iteration + 1) * self.tasks)

    def length(self, iteration: int, horizon: int) -> int:
        """Return the length of the runs of an iteration, from 1 to the horizon."""
        first = min(self.first_steps, horizon)
        growing = self.lengthening * self.iterations
        done = min(1.0, iteration / growing) if growing else 1.0
        return round(first + (horizon - first) * done)

    def windows(self, length: int) -> Iterator[int]:
        """Yield the steps of every window of a run."""
        size = self.window or length
        for begun in range(0, length, size):
            yield min(size, length - begun)


@dataclass(frozen=True)
class OptimizerTrained:
    """What happened in a meta-training.

    Attributes:
        losses: mean objective of the runs of every iteration, as they were.
        gradient_norms: norm of every meta-gradient before it was clipped.
        skipped: iterations in which a meta-gradient was not finite; its step was left
            out.
        frozen: runs stopped at their last finite phi, in all iterations.
        shares: mean weight of back-propagation in every merged meta-gradient.
        validations: objective of the held-out tasks by the number of iterations done.
        restarts: iterations after which the training went back to its best weights.
        kept: iterations after which the returned weights were reached.
        inner_steps: steps of phi, in all runs, those of validation included.
        seconds: time spent, in all calls that the training took.
    """

    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    skipped: tuple[int, ...]
    frozen: int
    shares: tuple[float, ...]
    validations: dict[int, float]
    restarts: tuple[int, ...]
    kept: int
    inner_steps: int
    seconds: float

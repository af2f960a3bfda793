"""The contract of a learned optimizer: coordinate-wise steps of phi, with a state."""

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from metricopt.errors import ConfigError, require_counts
from metricopt.registry import Registry

LARGEST_MOVE = 1.0
"""Most that one step moves a coordinate."""
OBSERVED_SHARE, OBSERVED_LEAST = 20, 3
"""The metric is observed at one step in 20 of the horizon, and at three at least."""
State = dict[str, Tensor]
"""What an optimizer remembers of a run, by name; every tensor begins with [...]."""


class Seen(NamedTuple):
    """What an optimizer may look at before a step, in runs [...] in lock-step.

    Attributes:
        phi: parameters, shape [..., d].
        gradient: gradient of the loss in phi, shape [..., d].
        loss: shape [...].
        cost: the metric as last shown, lower is better, in [0, 1], shape [...].
        step: steps taken before, t.
    """

    phi: Tensor
    gradient: Tensor
    loss: Tensor
    cost: Tensor
    step: int


class LearnedOptimizer(nn.Module, ABC):
    """An optimizer of phi whose weights are meta-learned.

    One small network moves every coordinate. So the order of the coordinates does not
    matter, and an optimizer learned at one size d works at any other. A step is a
    function of what is seen and of the state: it can be differentiated through many
    steps, and mapped over many sets of weights by `torch.func`.

    Args:
        horizon: steps T that the optimizer is trained for. It may take more, with a
            warning.

    Raises:
        ConfigError: if the horizon is not a whole number of at least 1.
    """

    def __init__(self, horizon: int) -> None:
        super().__init__()
        require_counts("a learned optimizer", {"horizon": horizon}, "horizon")
        self.horizon = int(horizon)

    @property
    def size(self) -> int:
        """Number of weights W."""
        return sum(each.numel() for each in self.parameters())

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of what the network sees of a coordinate, in order."""

    @property
    def sees_loss(self) -> bool:
        """Whether an input is made of the loss."""
        return False

    @property
    def sees_metric(self) -> bool:
        """Whether an input is made of the metric."""
        return False

    def observes(self, step: int) -> bool:
        """Return whether the metric is observed, and shown, before a step.

        So it is before the first step and the last one of the horizon, and evenly
        between; beyond the horizon at the same pace. Never without inputs of it.
        """
        observed = max(OBSERVED_LEAST, math.ceil(self.horizon / OBSERVED_SHARE))
        pace = max(1.0, (self.horizon - 1) / (observed - 1))
        return self.sees_metric and step == round(round(step / pace) * pace)

    def check_precision(self, phi: Tensor, name: str) -> None:
        """Check that phi has the type of the weights.

        Args:
            phi: what is to be stepped.
            name: what messages call it.

        Raises:
            ConfigError: if it has another one.
        """
        own = next((each.dtype for each in self.parameters()), phi.dtype)
        if phi.dtype != own:
            kinds = [str(each).removeprefix("torch.") for each in (own, phi.dtype)]
            raise ConfigError(
                f"{name} must be {kinds[0]} like the weights of the learned optimizer, "
                f"got {kinds[1]}: call optimizer.to(torch.{kinds[1]})"
            )

    def warn_beyond(self, steps: int) -> None:
        """Warn that a run of so many steps is longer than the horizon, if it is."""
        if steps > self.horizon:
            warnings.warn(
                f"the optimizer was trained for runs of {self.horizon} steps, and this "
                f"one goes on to step {steps}: it may do worse there",
                UserWarning,
                stacklevel=3,
            )

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the arguments that make an optimizer of the same form, for JSON."""

    @abstractmethod
    def start(self, phi: Tensor) -> State:
        """Return the state before the first step from phi [..., d]."""

    def forward(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return what to add to phi, [..., d] in [-1, 1], and the next state."""
        move, state = self._move(seen, state)
        return move.clamp(-LARGEST_MOVE, LARGEST_MOVE), state

    @abstractmethod
    def _move(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return what to add to phi, [..., d], and the next state."""


LEARNED: Registry[type[LearnedOptimizer]] = Registry(
    "learned optimizer", "metricopt.learned_optimizers", base=LearnedOptimizer
)
"""Kinds of learned optimizers; one of another package is here by an entry
point, or once it is imported."""


def kind_of(optimizer: LearnedOptimizer) -> str:
    """Return the registered name of an optimizer's class.

    Raises:
        ConfigError: if it has none.
    """
    for name in LEARNED:
        if LEARNED.get(name) is type(optimizer):
            return name
    raise ConfigError(
        f"{type(optimizer).__name__} must be registered before it is saved: decorate "
        "the class with @LEARNED.register(name)"
    )

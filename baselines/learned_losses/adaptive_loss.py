"""The contract of a loss that ALA's controller adapts, and what it sees of the past.

Source: Huang et al., ICML 2019, Sec. 3.2. Where the paper is silent we chose: moving
averages decay by 0.9.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError

PAST = 10
"""Periods whose statistics a state holds."""
DECAY = 0.9
LARGEST = 10.0
"""Greatest statistic, in units of chance."""


class AdaptiveLoss(ABC):
    """A loss with parameters Phi, one of them or a pair of classes moved by an action.

    All functions take k networks at once, each with a Phi of its own. A controller
    decides on P parameters of each by a state of F numbers. Statistics in the states
    are standardised, or in units of chance, so that a policy can be used on other data.

    Attributes:
        features: F.
        noted: name of the loss parameters in notes of a training.
    """

    features: int
    noted: str

    @abstractmethod
    def start(self, count: int, noise: float, generator: torch.Generator) -> Tensor:
        """Return the first loss parameters of all networks, shape [k, ...].

        Args:
            count: number of networks, k.
            noise: largest random distance from the default loss.
            generator: source of the noise.
        """

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Tensor, phi: Tensor) -> Tensor:
        """Return the loss of every network on one mini-batch, shape [k].

        Args:
            outputs: what the networks return, shape [n, k, C].
            targets: labels, shape [n].
            phi: loss parameters, shape [k, ...].
        """

    @abstractmethod
    def observe(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Take note of the observe split, and return what may change, bool, shape [P].

        Args:
            outputs: what the networks return, shape [k, N, C].
            targets: labels, shape [N].
        """

    @abstractmethod
    def states(self, phi: Tensor, done: float) -> Tensor:
        """Return what the controller sees of each parameter, shape [k, P, F].

        Args:
            phi: loss parameters, shape [k, ...].
            done: share of the training that is over, in [0, 1].
        """

    @abstractmethod
    def moved(self, phi: Tensor, changes: Tensor) -> Tensor:
        """Return the loss parameters after changes [k, P], within their bounds."""

    def followed(self, phi: Tensor) -> Tensor:
        """Return the loss parameters that the statistics give without a policy.

        Raises:
            ConfigError: if there are none.
        """
        raise ConfigError(f"{type(self).__name__} needs a policy to change")

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what was observed, for checkpoints."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""


class History:
    """The statistics of the last ten periods, and their moving average."""

    def __init__(self) -> None:
        self._past: deque[Tensor] = deque(maxlen=PAST)
        self._average: Tensor | None = None

    def observe(self, statistics: Tensor) -> None:
        """Take note of statistics in units of chance, any shape, NaN as 0."""
        known = statistics.nan_to_num(0.0).clamp(0, LARGEST)
        self._past.append(known)
        previous = known if self._average is None else self._average
        self._average = DECAY * previous + (1 - DECAY) * known

    @property
    def past(self) -> Tensor:
        """Statistics, oldest first, shape [..., 10]; at first the oldest repeats."""
        missing = PAST - len(self._past)
        return torch.stack([self._past[0]] * missing + list(self._past), -1)

    @property
    def change(self) -> Tensor:
        """Relative change of the latest from the moving average, shape [...]."""
        assert self._average is not None
        return (self._past[-1] - self._average) / self._average.clamp(min=1e-6)

    def state(self) -> dict[str, Any]:
        """Return what was observed, for checkpoints."""
        return {"past": list(self._past), "average": self._average}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self._past.extend(state["past"])
        self._average = state["average"]

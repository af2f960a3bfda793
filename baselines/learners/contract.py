"""The contract of a few-shot learner, and the registry."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import nn

from metricopt.errors import require_counts, require_ranges
from metricopt.fewshot.examples import Loss
from metricopt.fewshot.meta_learner import MetaLearner, Named
from metricopt.geometry.dual_iteration import Order
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Settings of a learner, and how it is made for a network.

    Attributes:
        order: whether meta-gradients hold second derivatives.
        steps: inner steps K.
        rate: inner rate alpha.
        geometry_rate: factor of the meta-optimizer's rate for the weights of the map.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    order: ClassVar[Order] = "full"
    steps: int = 5
    rate: float = 0.01
    geometry_rate: float = 1.0

    def __post_init__(self) -> None:
        require_counts("a learner", vars(self), "steps")
        require_ranges("a learner", vars(self), rate="> 0", geometry_rate="> 0")

    def make(
        self, network: nn.Module, loss: Loss, generator: torch.Generator
    ) -> MetaLearner:
        """Return a learner that starts from the weights of a network.

        Args:
            network: copied.
            loss: from outputs and targets of an episode to a scalar.
            generator: draws weights of the geometry, on the CPU.

        Raises:
            ConfigError: if the network does not suit; see `MetaLearner`.
        """
        geometry = partial(self.geometry, generator=generator)
        return MetaLearner(
            network, loss, geometry, steps=self.steps, rate=self.rate, order=self.order
        )

    @abstractmethod
    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the map for parameters phi, which is the identity at first."""


LEARNERS: Registry[type[Learner]] = Registry("learner", "baselines.learners")
"""All few-shot learners, by name."""

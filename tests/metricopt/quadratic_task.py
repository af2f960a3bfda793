"""A task whose loss and metric are least at different phi, both known."""

import torch
from torch import Tensor

from metricopt.tasks.task import Task

SIZE = 6


class QuadraticTask(Task):
    """Loss: noisy |phi - loss_minimum|^2 / 2. Cost: q / (1 + q), least at another phi.

    q = sum_i weight_i (phi_i - metric_minimum_i)^2. The cost is flat far away and
    differently steep along the axes, as a metric is and the loss is not.
    """

    def __init__(self, size: int = SIZE, *, noise: float = 0.3) -> None:
        super().__init__(size)
        axis = torch.arange(size)
        self.loss_minimum = torch.where(axis % 2 == 0, 1.0, -0.5)
        self.metric_minimum = self.loss_minimum + torch.where(axis < 2, 0.8, -0.4)
        self.weight = 0.5 + axis / size
        self.noise = noise
        self.observed: list[Tensor] = []

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        shift = self.noise * torch.randn(phi.shape, generator=generator)
        return 0.5 * (phi - self.loss_minimum - shift).square().sum(1)

    def _observe(self, phi: Tensor) -> Tensor:
        self.observed.append(phi)
        return self.cost(phi)

    @property
    def examples(self) -> int:
        return 100

    def _observe_part(self, phi: Tensor, places: Tensor) -> Tensor:
        # Every part is off by a little of its own, the same for all rows.
        offset = 0.02 * torch.sin(places.double().sum())
        return (self.cost(phi) + offset).clamp(0, 1)

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        # What a part of the examples says: the cost, off by the same for all rows.
        offset = 0.02 * torch.randn((), generator=generator)
        return (self.cost(phi) + offset).clamp(0, 1)

    def cost(self, phi: Tensor) -> Tensor:
        """Return the cost of phi [B, d], [B], without counting a query."""
        gap = (phi - self.metric_minimum).double()
        badness = (self.weight.double() * gap.square()).sum(1)
        return badness / (1 + badness)


class FlatTask(QuadraticTask):
    """A quadratic task whose metric says nothing: always 0.25."""

    def cost(self, phi: Tensor) -> Tensor:
        return torch.full((len(phi),), 0.25, dtype=torch.float64)


class SteepTask(QuadraticTask):
    """A quadratic task whose loss is infinite beyond a distance of 3 from its minimum.

    Rates above 2 diverge on any quadratic; this makes them diverge within a few steps.
    """

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        losses = 100 * super()._losses(phi, generator)
        return torch.where(losses > 450, torch.inf, losses)

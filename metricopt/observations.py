"""What a run observes: batched trajectories with sparse metric queries, and budgets."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError


@dataclass(frozen=True)
class Budget:
    """What a method may spend for one result.

    Attributes:
        queries: metric queries, those of meta-training included; 0 means none.
        gradient_steps: steps of fine-tuning T.
    """

    queries: int
    gradient_steps: int

    def __post_init__(self) -> None:
        if self.queries < 0 or self.gradient_steps < 0:
            raise ConfigError(
                "a budget needs queries >= 0 and gradient_steps >= 0, got "
                f"queries={self.queries}, gradient_steps={self.gradient_steps}"
            )


@dataclass(frozen=True)
class Trajectories:
    """B fine-tuning runs in lock-step, each with K sparse metric observations.

    Attributes:
        phi: adapter parameters before every step, shape [B, T, d].
        losses: mini-batch loss at every step, shape [B, T].
        steps: observed steps, shape [B, K], strictly increasing, in [0, T).
        costs: metric cost at those steps, shape [B, K], float64, in [0, 1].
    """

    phi: Tensor
    losses: Tensor
    steps: Tensor
    costs: Tensor

    def __post_init__(self) -> None:
        rows, length = self.phi.shape[:2]
        observed = (rows, self.steps.shape[-1])
        if tuple(self.losses.shape) != (rows, length):
            raise ShapeError(
                f"losses must have shape {(rows, length)} to go with phi "
                f"{tuple(self.phi.shape)}, got {tuple(self.losses.shape)}"
            )
        if not tuple(self.steps.shape) == tuple(self.costs.shape) == observed:
            raise ShapeError(
                f"steps {tuple(self.steps.shape)} and costs {tuple(self.costs.shape)} "
                f"must both have shape {observed}"
            )

    def __len__(self) -> int:
        return self.phi.shape[0]

    def rows(self, index: Tensor | slice) -> "Trajectories":
        """Return the trajectories at `index`, as a batch of their own."""
        return Trajectories(
            self.phi[index], self.losses[index], self.steps[index], self.costs[index]
        )


def concatenate(parts: "list[Trajectories]") -> Trajectories:
    """Join batches of trajectories of equal length T and equal K."""
    return Trajectories(
        torch.cat([part.phi for part in parts]),
        torch.cat([part.losses for part in parts]),
        torch.cat([part.steps for part in parts]),
        torch.cat([part.costs for part in parts]),
    )

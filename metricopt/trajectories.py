"""Fine-tuning trajectories of phi, many in lock-step, with sparse metric queries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DivergedError
from metricopt.observations import Trajectories
from metricopt.task import Task


class Stepper(Protocol):
    """What a torch optimizer and a `MetricOptimizer` have in common."""

    def zero_grad(self) -> None:
        """Clear the gradient of phi."""

    def step(self) -> None:
        """Move phi along its gradient."""


class LinearDecay:
    """A stepper whose learning rate falls linearly to zero over `steps` steps."""

    def __init__(
        self, stepper: Stepper, optimizer: torch.optim.Optimizer, steps: int
    ) -> None:
        self._stepper = stepper
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 1.0 - step / steps
        )

    def zero_grad(self) -> None:
        """Clear the gradient of phi."""
        self._stepper.zero_grad()

    def step(self) -> None:
        """Move phi, then lower the rate."""
        self._stepper.step()
        self._schedule.step()


Query = Callable[[Tensor], Tensor]
OptimizerFactory = Callable[[torch.nn.Parameter], Stepper]


LOSS_OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
}
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)


def loss_optimizer(name: str, rate: float) -> OptimizerFactory:
    """Return a factory of a torch optimizer that follows the loss gradient.

    Raises:
        ConfigError: if the name is not one of `LOSS_OPTIMIZERS`.
    """
    if name not in LOSS_OPTIMIZERS:
        known = ", ".join(LOSS_OPTIMIZERS)
        raise ConfigError(f"unknown loss optimizer {name!r}; known: {known}")
    kind = LOSS_OPTIMIZERS[name]
    return lambda phi: kind([phi], lr=rate)  # type: ignore[call-arg]


def starts(
    size: int, rows: int, deviation: float, generator: torch.Generator
) -> Tensor:
    """Draw phi_0 ~ N(0, deviation^2 I), shape [rows, size]."""
    return deviation * torch.randn(rows, size, generator=generator)


@dataclass(frozen=True)
class Rollout:
    """How a trajectory is made.

    Attributes:
        steps: steps T.
        observations: metric queries K per trajectory, 1 <= K <= T.
        start_deviation: phi_0 ~ N(0, start_deviation^2 I).
    """

    steps: int = 50
    observations: int = 3
    start_deviation: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= self.observations <= self.steps:
            raise ConfigError(
                f"a trajectory of {self.steps} steps needs 1 to {self.steps} "
                f"observations, got {self.observations}"
            )


def collect(
    task: Task,
    optimizer: OptimizerFactory,
    rollout: Rollout,
    *,
    rows: int,
    generator: torch.Generator,
    query: Query | None = None,
) -> Trajectories:
    """Fine-tune phi from `rows` random starts and observe each K times.

    Args:
        task: gives the losses and is queried for the metric.
        optimizer: makes an optimizer over phi [B, d].
        rollout: length, number of observations and start.
        rows: number of trajectories B.
        generator: source of starts, mini-batches and query times.
        query: observes phi [M, d] -> costs [M]; `task.observe` if None.

    Returns:
        The trajectories; B * K queries were counted.
    """
    start = starts(task.size, rows, rollout.start_deviation, generator)
    path, losses = run(task, optimizer, start, rollout.steps, generator)
    steps = query_times(rows, rollout.steps, rollout.observations, generator)
    visited = path[torch.arange(rows)[:, None], steps]
    costs = (query or task.observe)(visited.flatten(0, 1)).view(rows, -1)
    return Trajectories(path[:, :-1], losses, steps, costs)


def run(
    task: Task,
    optimizer: OptimizerFactory,
    start: Tensor,
    steps: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Fine-tune phi [B, d] for some steps.

    Returns:
        The path of phi, shape [B, T + 1, d], and the losses on it, shape [B, T].
    """
    phi = torch.nn.Parameter(start.clone())
    stepper = optimizer(phi)
    path = torch.empty(len(start), steps + 1, start.shape[1], dtype=start.dtype)
    losses = torch.empty(len(start), steps, dtype=start.dtype)
    for step in range(steps):
        path[:, step] = phi.detach()
        stepper.zero_grad()
        loss = task.losses(phi, generator)
        loss.sum().backward()
        losses[:, step] = loss.detach()
        stepper.step()
    path[:, steps] = phi.detach()
    return path, losses


def query_times(
    rows: int, steps: int, count: int, generator: torch.Generator
) -> Tensor:
    """Draw `count` of `steps` times without replacement, sorted: [rows, count]."""
    order = torch.rand(rows, steps, generator=generator).argsort(1)
    return order[:, :count].sort(1).values


def select_rate(
    task: Task, optimizer: str, rollout: Rollout, generator: torch.Generator
) -> float:
    """Return the learning rate of `LEARNING_RATES` with the least mean loss.

    Looks at losses of the train split only, averaged over the second half of a few
    trajectories each: it costs no metric query. Rates that diverge are passed over.

    Raises:
        DivergedError: if every rate diverges.
    """
    seed = int(torch.randint(2**62, (), generator=generator))
    found: dict[float, float] = {}
    for rate in LEARNING_RATES:
        # The same starts and mini-batches for every rate.
        same = torch.Generator().manual_seed(seed)
        start = starts(task.size, 4, rollout.start_deviation, same)
        try:
            factory = loss_optimizer(optimizer, rate)
            losses = run(task, factory, start, rollout.steps, same)[1]
        except DivergedError:
            continue
        found[rate] = losses[:, rollout.steps // 2 :].mean().item()
    if not found:
        raise DivergedError(f"the loss diverges at every rate of {LEARNING_RATES}")
    return min(found, key=lambda rate: found[rate])

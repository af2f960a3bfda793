"""Fine-tune phi on the loss, many runs in lock-step, and choose the learning rate."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from metricopt.errors import DivergedError
from metricopt.process.seeding import drawn_seed
from metricopt.tasks.phi_optimizers import PHI_OPTIMIZERS
from metricopt.tasks.task import Task


class Stepper(Protocol):
    """What a torch optimizer and a `MetricOptimizer` have in common."""

    def zero_grad(self) -> None:
        """Clear the gradient of phi."""

    def step(self) -> None:
        """Move phi along its gradient."""


OptimizerFactory = Callable[[torch.nn.Parameter], Stepper]
"""Makes the optimizer that steps phi [B, d]."""

LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
START_DEVIATION = 0.1
"""Standard deviation of every coordinate of a random start."""
TRIED = 4
"""Number of runs in which each learning rate is tried."""


class Streams(NamedTuple):
    """The randomness of fine-tuning, so split that runs can be compared in pairs.

    Attributes:
        descent: source of starts and mini-batches, and of nothing else.
        search: source of everything else, such as perturbations and trials of steps.
    """

    descent: torch.Generator
    search: torch.Generator


def paired_streams(generator: torch.Generator) -> Streams:
    """Draw the streams of a run, before anything else is drawn from its generator.

    Every method that fine-tunes phi from random starts begins so. Given equally seeded
    generators and as many rows, row i starts at the same phi and sees the same
    mini-batches in all of them, whatever else they draw.
    """
    seeds = torch.randint(2**62, (2,), generator=generator)
    return Streams(*(torch.Generator().manual_seed(seed) for seed in seeds.tolist()))


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


def loss_optimizer(name: str, rate: float, steps: int = 1) -> OptimizerFactory:
    """Return a factory of one of `PHI_OPTIMIZERS`; raise ConfigError for others.

    The number of steps matters to optimizers with a schedule of their own alone.
    """
    kind = PHI_OPTIMIZERS.get(name)
    return lambda phi: kind.make(phi, rate, steps)


def starts(
    size: int, rows: int, deviation: float, generator: torch.Generator
) -> Tensor:
    """Draw phi_0 ~ N(0, deviation^2 I), shape [rows, size]."""
    return deviation * torch.randn(rows, size, generator=generator)


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
    # Learned optimizers go by the loss, too.
    see = getattr(stepper, "see", None)
    path = torch.empty(len(start), steps + 1, start.shape[1], dtype=start.dtype)
    losses = torch.empty(len(start), steps, dtype=start.dtype)
    for step in range(steps):
        path[:, step] = phi.detach()
        stepper.zero_grad()
        loss = task.losses(phi, generator)
        loss.sum().backward()
        losses[:, step] = loss.detach()
        if see is not None:
            see(loss=loss)
        stepper.step()
    path[:, steps] = phi.detach()
    return path, losses


def select_rate(
    task: Task,
    optimizer: str,
    steps: int,
    generator: torch.Generator,
    *,
    start_deviation: float = START_DEVIATION,
) -> float:
    """Return the learning rate of `LEARNING_RATES` with the least mean loss.

    Each rate is tried in a few runs of at least 1 step, and judged by the mean loss of
    their second half. Only the train split is read, so it costs no metric query. Rates
    that diverge are skipped; DivergedError is raised if all do.
    """
    seed = drawn_seed(generator)
    found: dict[float, float] = {}
    for rate in LEARNING_RATES:
        # The same starts and mini-batches for every rate.
        same = torch.Generator().manual_seed(seed)
        start = starts(task.size, TRIED, start_deviation, same)
        try:
            factory = loss_optimizer(optimizer, rate, steps)
            losses = run(task, factory, start, steps, same)[1]
        except DivergedError:
            continue
        found[rate] = losses[:, steps // 2 :].mean().item()
    if not found:
        raise DivergedError(f"the loss diverges at every rate of {LEARNING_RATES}")
    return min(found, key=lambda rate: found[rate])


def loss_rate(
    task: Task,
    optimizer: str,
    steps: int,
    *,
    start_deviation: float = START_DEVIATION,
) -> float:
    """Return the learning rate of a task for runs of a given number of steps.

    It is found once, with the task's own seeds, and remembered in `rates`. All methods
    on the task, and on tasks that share its rates, get the same rate, whichever asks
    first. 0 steps are treated as 1. Errors are those of `select_rate`.
    """
    asked = (optimizer, max(1, steps), start_deviation)
    if asked not in task.rates:
        generator = task.seeds.generator("rate", optimizer)
        task.rates[asked] = select_rate(
            task, *asked[:2], generator, start_deviation=start_deviation
        )
    return task.rates[asked]

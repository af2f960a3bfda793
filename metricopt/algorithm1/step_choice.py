"""Line 14: how long a guided step is; alpha_t, chosen by a few runs of candidates."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.algorithm1.optimizer import Guidance, MetricOptimizer
from metricopt.algorithm1.recipe import MetaTrained
from metricopt.process.seeding import drawn_seed
from metricopt.tasks.descent import (
    LinearDecay,
    OptimizerFactory,
    Stepper,
    Streams,
    paired_streams,
)
from metricopt.tasks.phi_optimizers import PHI_OPTIMIZERS
from metricopt.tasks.task import Task


class Geometry:
    """Where the steps of an optimizer over phi are taken: in phi itself."""

    def place(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Return what takes the steps of an optimizer over phi."""
        return optimizer

    def notes(self) -> dict[str, float]:
        """Return figures of the geometry and of the steps that were placed last."""
        return {}


PLAIN = Geometry()


def guided_optimizer(
    trained: MetaTrained,
    optimizer: str,
    steps: int,
    step: float,
    generator: torch.Generator,
    geometry: Geometry = PLAIN,
) -> OptimizerFactory:
    """Return a factory of guided optimizers with steps that fall linearly to zero.

    One of `PHI_OPTIMIZERS` takes the steps on u_t. The first has the length `step`, in
    units of the spread of phi, which stays within the reach of the value function. A
    geometry bends them.
    """
    length = step * trained.spread
    kind = PHI_OPTIMIZERS.get(optimizer)
    # SGD gets a gradient of that length. Adam's rate gives its step that length.
    own = kind.own_length

    def make(phi: torch.nn.Parameter) -> Stepper:
        rate = length / phi.shape[-1] ** 0.5 if own else 1.0
        inner = kind.make(phi, rate, steps)
        guidance = Guidance(length=None if own else length, radius=trained.reach)
        guided = MetricOptimizer(
            geometry.place(inner),
            trained.value_function,
            guidance=guidance,
            generator=generator,
        )
        return LinearDecay(guided, inner, max(steps, 1))

    return make


TRIALS = 3
"""Fine-tuning runs per candidate step; each costs one query."""

Finetune = Callable[[float, int, Streams], Tensor]
"""Returns the path of phi [rows, T + 1, d] for a step and a number of rows."""


def choose_step(
    task: Task, steps: Sequence[float], finetune: Finetune, generator: torch.Generator
) -> tuple[float, int]:
    """Return the step with the least mean cost of the last phi, and the queries spent.

    A single candidate is taken without a query. All have the same trials.
    """
    if len(steps) == 1:
        return steps[0], 0
    seed = drawn_seed(generator)
    costs = {}
    for step in steps:
        streams = paired_streams(torch.Generator().manual_seed(seed))
        path = finetune(step, TRIALS, streams)
        costs[step] = task.observe(path[:, -1]).mean().item()
    return min(steps, key=lambda step: costs[step]), trial_queries(steps)


def trial_queries(steps: Sequence[float]) -> int:
    """Return the queries `choose_step` spends."""
    return TRIALS * len(steps) if len(steps) > 1 else 0

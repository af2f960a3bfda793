"""Lines 1 to 9: optimizer and value function, each trained with the other.

Source: Huang et al., CVPR 2021, Alg. S1. Differs: the value function is trained with
the recipe of `metricopt.algorithm1.recipe`, and on several runs at a time; its weights
are interpolated (line 7) before the optimizer is updated (line 6), which uses the
adapted ones either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.algorithm1.meta_training import MetaTraining
from metricopt.algorithm1.recipe import Progress, Recipe
from metricopt.algorithm1.trajectories import LOSS, Kind, Trajectories
from metricopt.algorithm_s1.task_runs import (
    ObservedRun,
    TaskRuns,
    observed_run,
    seeded_batches,
)
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.meta_training import train_optimizer
from metricopt.learned_optimizers.settings import OptimizerTrained, OptimizerTraining
from metricopt.process.seeding import drawn_seed
from metricopt.tasks.descent import loss_optimizer, starts
from metricopt.tasks.task import Task


@dataclass(frozen=True)
class JointlyTrained:
    """What came of the training.

    Attributes:
        optimizer: in evaluation mode.
        happened: what happened on the way.
        queries: metric queries made.
        value_losses: L_v of every update of the value function.
    """

    optimizer: LearnedOptimizer
    happened: OptimizerTrained
    queries: int
    value_losses: list[float]


class ValueTraining(MetaTraining):
    """Lines 4, 5 and 7 on given trajectories, those of the learned optimizer."""

    def __init__(self, task: Task, recipe: Recipe, generator: torch.Generator) -> None:
        # The optimizer of loss trajectories is not used: none are collected.
        super().__init__(task, recipe, loss_optimizer("sgd", 1.0), generator)
        self._given: Trajectories | None = None

    def learn(self, trajectories: Trajectories) -> None:
        """Interpolate trajectories and update the value function on them."""
        self._given = trajectories
        self.advance()

    def predicted(self, phi: Tensor) -> Tensor:
        """Return what the adapted value function predicts of phi [M, d]: [M]."""
        cost: Tensor = self.adapted(phi)
        return cost.clamp(0, 1)

    def _collect(self, rows: int) -> dict[Kind, Trajectories]:
        assert self._given is not None
        return {LOSS: self._given}


class JointTraining:
    """Gives `train_optimizer` its tasks, and learns the value function they hold.

    Args:
        task: gives losses, and counts queries.
        optimizer: trained in place; it sees the metric.
        recipe: how the value function is trained; its tasks are all runs.
        deviation: of every coordinate of phi_0.
        generator: source of all randomness.
        progress: called with the runs done, and all of them.
    """

    def __init__(
        self,
        task: Task,
        optimizer: LearnedOptimizer,
        recipe: Recipe,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.task, self.optimizer = task, optimizer
        self.value = ValueTraining(task, recipe, generator)
        self.generator, self.progress = generator, progress
        self.queries = 0

    def __call__(self, numbers: Sequence[int]) -> TaskRuns:
        """Lines 3 to 5, and 7: runs from new starts, and what they say of the metric.

        The tasks that are returned have these starts and mini-batches, and the adapted
        value function for their metric. What they show the optimizer is what was
        observed, and what the value function says of the way from there.
        """
        recipe = self.value.recipe
        seed, deviation = drawn_seed(self.generator), recipe.rollout.start_deviation
        start = starts(self.task.size, len(numbers), deviation, self.generator)
        batches = seeded_batches("mini-batch", seed)
        run = observed_run(
            self.optimizer,
            self.task,
            start,
            steps=self.optimizer.horizon,
            batches=batches,
        )
        self.queries += run.costs.numel()
        steps = run.steps.expand(len(start), -1)
        self.value.learn(Trajectories(run.path[:, :-1], run.losses, steps, run.costs))
        if self.progress is not None:
            self.progress(self.value.tasks_done, recipe.tasks)
        return TaskRuns(
            self.task,
            start,
            batches=batches,
            cost=self.value.predicted,
            errors=self._errors(run),
        )

    @torch.no_grad()
    def _errors(self, run: ObservedRun) -> dict[int, Tensor]:
        """Return what was observed less what is predicted there, by step: [B]."""
        phi = run.path[:, run.steps]
        predicted = self.value.predicted(phi.flatten(0, 1)).view(phi.shape[:2])
        errors = run.costs - predicted
        return dict(zip(run.steps.tolist(), errors.T, strict=True))

    def train(self, settings: OptimizerTraining) -> JointlyTrained:
        """Run all iterations, and return the optimizer (line 9)."""
        happened = train_optimizer(self.optimizer, self, settings, show=False)
        return JointlyTrained(
            self.optimizer.eval(), happened, self.queries, self.value.losses
        )

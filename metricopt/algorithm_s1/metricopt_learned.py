"""Algorithm S1 as a method: an optimizer learned within the budget, then its steps.

Source: Huang et al., CVPR 2021, Alg. S1. Differs: inputs of time and of the gradient's
length beside the paper's seven; evolution strategies alone estimate the meta-gradient;
the weights after the last iteration are kept, as validation would take queries.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.algorithm1.meta_preparation import pack, unpack
from metricopt.algorithm1.recipe import RECIPE, MetaTrained, Progress, Recipe
from metricopt.algorithm1.trajectories import Rollout
from metricopt.algorithm_s1.joint_training import JointTraining
from metricopt.algorithm_s1.task_runs import observed_run, observed_steps
from metricopt.errors import ConfigError
from metricopt.gaussian_processes.needed import require_processes
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS, MetricOptMLP
from metricopt.learned_optimizers.settings import OptimizerTraining
from metricopt.learned_optimizers.unroll import NEVER
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.known import Known, KnownOptimizer
from metricopt.methods.result import Budget, FinetuneResult, last_step
from metricopt.process.seeding import drawn_seed
from metricopt.tasks.descent import paired_streams, starts
from metricopt.tasks.task import Task

OPTIMIZER = "optimizer."
"""What names of the optimizer's weights begin with in a preparation."""
TRAINING = OptimizerTraining(
    iterations=500, tasks=4, pairs=2, deviation=0.03, rate=3e-3
)
SCALE = 0.3


@METHODS.register("metricopt-learned")
@dataclass(frozen=True)
class MetricOptLearned(Method):
    """Meta-train an optimizer and a value function together, then use the optimizer.

    No step asks the value function, which is kept for a look at its health alone. The
    optimizer sees the metric as it was last observed, at 5 % of the steps and at three
    of them at least. These observations are queries, in meta-training and after. In
    meta-training copies of a run with other weights are not observed: they see what was
    observed of the run, and what the value function says of the way from there.

    Attributes:
        training: how the optimizer is trained; iterations are cut to the budget.
        recipe: how the value function is trained.
        scale: alpha of the optimizer where its log-magnitude is 0.
        known: an optimizer that was meta-trained before, of any kind and on any tasks;
            it replaces meta-training.
    """

    sees: ClassVar[Sees] = "loss gradients"
    training: OptimizerTraining = TRAINING
    recipe: Recipe = field(default_factory=lambda: replace(RECIPE, on_policy=0.0))
    scale: float = SCALE
    known: KnownOptimizer | None = None

    def from_starts(self, deviation: float) -> "MetricOptLearned":
        """Return the method with random starts of another standard deviation."""
        rollout = replace(self.recipe.rollout, start_deviation=deviation)
        return replace(self, recipe=replace(self.recipe, rollout=rollout))

    def knowing(self, known: Known, adapter: Mapping[str, str]) -> Method:
        """Return the method with a learned optimizer; what else is known raises."""
        if not isinstance(known, KnownOptimizer):
            return super().knowing(known, adapter)
        return replace(self, known=known)

    def suits(self, task: Task) -> bool:
        """Whether the method can work on a task; ConfigError without gpytorch."""
        require_processes()
        return super().suits(task)

    def preparation_key(self, budget: Budget) -> dict[str, object] | None:
        """Return a JSON-able key of all that determines the optimizer of a task.

        None where it is known. ConfigError is raised if the budget does not allow a
        single iteration.
        """
        if self.known is not None:
            return None
        return {
            "training": asdict(self._training(budget)),
            "recipe": asdict(self.recipe),
            "scale": self.scale,
            "steps": budget.gradient_steps,
        }

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Meta-train the optimizer with the queries that the budget leaves.

        Nothing is done where it is known. ConfigError is raised if the budget does not
        allow a single iteration.
        """
        if self.known is not None:
            return Preparation()
        training = self._training(budget)
        optimizer = self._optimizer(budget, drawn_seed(generator))
        rollout = Rollout(
            optimizer.horizon,
            len(observed_steps(optimizer, optimizer.horizon)),
            self.recipe.rollout.start_deviation,
        )
        recipe = replace(
            self.recipe,
            tasks=training.iterations * training.tasks,
            block=training.tasks,
            group=training.tasks,
            rollout=rollout,
        )
        joint = JointTraining(task, optimizer, recipe, generator, progress=progress)
        trained = joint.train(replace(training, seed=drawn_seed(generator)))
        happened, value = trained.happened, pack(joint.value.result())
        weights = optimizer.state_dict()
        tensors = {OPTIMIZER + name: weight for name, weight in weights.items()}
        facts = value.facts | {
            "iterations": float(training.iterations),
            "skipped": float(len(happened.skipped)),
            "frozen": float(happened.frozen),
            # Line 3 takes steps beside those of the optimizer's training.
            "inner_steps": float(happened.inner_steps + recipe.tasks * rollout.steps),
        }
        return Preparation(trained.queries, tensors | value.tensors, facts)

    def value_function(self, prepared: Preparation) -> MetaTrained | None:
        """Return the value function of a preparation; no run needs it."""
        if self.known is not None:
            return None
        tensors = {
            name: tensor
            for name, tensor in prepared.tensors.items()
            if not name.startswith(OPTIMIZER)
        }
        return unpack(replace(prepared, tensors=tensors), self.recipe)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Train the optimizer once, then let it move all rows in lock-step."""
        streams = paired_streams(generator)
        prepared = prepared or self.prepare(task, budget, generator)
        known = self.known or self.learned(prepared, task, budget)
        optimizer = known.optimizer
        if self.known is not None:
            optimizer.warn_beyond(budget.gradient_steps)
        self._check_queries(optimizer, budget)
        deviation = self.recipe.rollout.start_deviation
        start = starts(task.size, rows, deviation, streams.descent)
        run = observed_run(
            optimizer,
            task,
            start,
            steps=budget.gradient_steps,
            batches=lambda step: streams.descent,
        )
        stopped = int((run.frozen_at != NEVER).sum())
        notes = prepared.facts | {"stopped": float(stopped)}
        result = _charged(run.path, prepared.queries, run.steps)
        return replace(result, notes=notes, known=(known,) * rows)

    def learned(
        self, prepared: Preparation, task: Task, budget: Budget
    ) -> KnownOptimizer:
        """Return the optimizer of a preparation."""
        optimizer = self._optimizer(budget)
        optimizer.load_state_dict(
            {
                name.removeprefix(OPTIMIZER): weight
                for name, weight in prepared.tensors.items()
                if name.startswith(OPTIMIZER)
            }
        )
        steps = optimizer.horizon
        return KnownOptimizer(
            optimizer.eval(), f"runs of {steps} steps of {task.size} parameters"
        )

    def _check_queries(self, optimizer: LearnedOptimizer, budget: Budget) -> None:
        own = len(observed_steps(optimizer, budget.gradient_steps))
        if own > budget.queries:
            raise ConfigError(
                f"{budget.queries} queries are left for the run, which needs {own}: so "
                f"often is the optimizer shown the metric in {budget.gradient_steps} "
                f"steps; allow {own - budget.queries} more"
            )

    def _optimizer(self, budget: Budget, seed: int = 0) -> MetricOptMLP:
        horizon = max(1, budget.gradient_steps)
        return MetricOptMLP(horizon, ALL_INPUTS, scale=self.scale, seed=seed)

    def _training(self, budget: Budget) -> OptimizerTraining:
        """Return the training with as many iterations as the budget allows."""
        optimizer = self._optimizer(budget)
        own = len(observed_steps(optimizer, budget.gradient_steps))
        run = len(observed_steps(optimizer, optimizer.horizon))
        each = self.training.tasks * run
        iterations = min(self.training.iterations, (budget.queries - own) // each)
        if iterations < 1:
            raise ConfigError(
                f"a budget of {budget.queries} queries, {own} of them reserved for the "
                f"run itself, allows no iteration with {each} observations"
            )
        return replace(self.training, iterations=iterations)


def _charged(path: Tensor, shared: int, observed: Tensor) -> FinetuneResult:
    """Return the last phi of a path, charged with shared queries and its own."""
    result = last_step(path, shared_queries=shared)
    checkpoints = tuple(
        replace(each, queries=shared + int((observed < each.step).sum()))
        for each in result.checkpoints
    )
    return replace(result, queries=checkpoints[-1].queries, checkpoints=checkpoints)

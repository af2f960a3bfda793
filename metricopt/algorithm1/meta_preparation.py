"""Inputs: tasks, K and T within a budget, and the value function prepared with them."""

import math
from dataclasses import asdict, replace
from typing import ClassVar

import torch

from metricopt.algorithm1.meta_training import meta_train
from metricopt.algorithm1.recipe import MetaTrained, Progress, Recipe
from metricopt.algorithm1.step_choice import trial_queries
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
from metricopt.gaussian_processes.needed import require_processes
from metricopt.methods.contract import Method, Preparation, Sees
from metricopt.methods.result import Budget
from metricopt.tasks.descent import OptimizerFactory, loss_optimizer, loss_rate
from metricopt.tasks.task import Task


def suited_recipe(recipe: Recipe, budget: Budget) -> Recipe:
    """Return the recipe with trajectories as long as the run they prepare for.

    Each is observed at 5 % of its steps, but at least at three of them, and at two if
    the run is a single step: of one phi alone there is nothing to learn.
    """
    steps = max(2, budget.gradient_steps)
    observations = min(steps, max(3, math.ceil(steps / 20)))
    rollout = replace(recipe.rollout, steps=steps, observations=observations)
    return replace(recipe, rollout=rollout)


def fitted_recipe(recipe: Recipe, budget: Budget, kept: int) -> Recipe:
    """Return the recipe with as many tasks as the budget's queries allow.

    Of these, `kept` are reserved for what follows meta-training. ConfigError is raised
    if the rest does not pay for a single trajectory.
    """
    observations = recipe.rollout.observations
    left = budget.queries - kept
    if recipe.queries_on == "train":
        # Every block queries two parts of train, each once more at phi = 0.
        left = left * recipe.block * observations // (recipe.block * observations + 2)
    tasks = min(recipe.tasks, left // observations)
    if tasks < 1:
        raise ConfigError(
            f"a budget of {budget.queries} queries, {kept} of them reserved for later, "
            f"allows no trajectory with {observations} observations"
        )
    return replace(recipe, tasks=tasks)


class MetaTrainedMethod(Method):
    """A method that follows a value function, which is trained once for all its runs.

    Attributes:
        recipe: how the value function is trained; its tasks are cut to the budget.
        trajectories: one of `PHI_OPTIMIZERS`, which makes the loss trajectories.
        rate: learning rate of the loss trajectories; None for the one found for the
            task.
        steps: candidate lengths of a guided step.
        literal: whether it is the published algorithm.
    """

    sees: ClassVar[Sees] = "loss gradients"
    recipe: Recipe
    trajectories: str = "sgd"
    rate: float | None
    steps: tuple[float, ...]
    literal: ClassVar[bool] = False

    def suits(self, task: Task) -> bool:
        """Whether the method can work on a task.

        ConfigError is raised without gpytorch: here, before the first query.
        """
        require_processes()
        return super().suits(task)

    def preparation_key(self, budget: Budget) -> dict[str, object] | None:
        """Return a JSON-able key of all that determines the value function of a task.

        ConfigError is raised if the budget does not allow a single trajectory.
        """
        key = {
            "recipe": asdict(self._recipe(budget)),
            "trajectories": self.trajectories,
            "literal": self.literal,
            "steps": budget.gradient_steps,
        }
        return key if self.rate is None else key | {"rate": self.rate}

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Meta-train the value function with the queries that the budget leaves.

        ConfigError is raised if it does not allow a single trajectory.
        """
        recipe, factory = self._recipe(budget), self._loss_factory(task, budget)
        return pack(meta_train(task, recipe, factory, generator, progress=progress))

    def value_function(self, prepared: Preparation) -> MetaTrained:
        """Return the value function of a preparation."""
        return unpack(prepared, self.recipe)

    def _recipe(self, budget: Budget, kept: int = 0) -> Recipe:
        """Return the recipe within a budget, of which some queries are kept."""
        return fitted_recipe(self.recipe, budget, kept + trial_queries(self.steps))

    def _loss_factory(self, task: Task, budget: Budget) -> OptimizerFactory:
        rate = self.rate
        if rate is None:
            rate = loss_rate(task, self.trajectories, budget.gradient_steps)
        return loss_optimizer(self.trajectories, rate, budget.gradient_steps)


def pack(trained: MetaTrained) -> Preparation:
    """Return a trained value function as a preparation."""
    facts = {
        "spread": trained.spread,
        "reach": trained.reach,
        "tasks": float(trained.recipe.tasks),
    }
    return Preparation(trained.queries, trained.value_function.state_dict(), facts)


def unpack(prepared: Preparation, recipe: Recipe) -> MetaTrained:
    """Return the value function in a preparation; raise ConfigError without one."""
    state, facts = prepared.tensors, prepared.facts
    if "phi_mean" not in state or not {"spread", "reach", "tasks"} <= facts.keys():
        raise ConfigError(
            "the preparation must hold a value function with its spread, reach and "
            f"tasks, got tensors {sorted(state)} and facts {sorted(facts)}"
        )
    value_function = ValueFunction(len(state["phi_mean"]))
    value_function.load_state_dict(state)
    return MetaTrained(
        value_function.eval(),
        replace(recipe, tasks=int(facts["tasks"])),
        prepared.queries,
        facts["spread"],
        facts["reach"],
    )

"""Inputs: tasks, K and T within a budget, and the value function prepared with them."""

import math
from dataclasses import asdict, replace

from metricopt.algorithm1.recipe import MetaTrained, Recipe
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
from metricopt.methods.contract import Preparation
from metricopt.methods.result import Budget
from metricopt.tasks.descent import OptimizerFactory, loss_optimizer, loss_rate
from metricopt.tasks.task import Task


def suited_recipe(recipe: Recipe, budget: Budget) -> Recipe:
    """Return the recipe with trajectories as long as the run they prepare for.

    Each is observed at 5 % of its steps, but at least at three of them.
    """
    steps = max(1, budget.gradient_steps)
    observations = min(steps, max(3, math.ceil(steps / 20)))
    rollout = replace(recipe.rollout, steps=steps, observations=observations)
    return replace(recipe, rollout=rollout)


def fitted_recipe(recipe: Recipe, budget: Budget, kept: int) -> Recipe:
    """Return the recipe with as many tasks as the budget's queries allow.

    Of these, `kept` are reserved for what follows meta-training.

    Raises:
        ConfigError: if the rest does not pay for a single trajectory.
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


def trajectory_factory(
    task: Task, budget: Budget, *, trajectories: str, rate: float | None
) -> OptimizerFactory:
    """Return the loss optimizer of the trajectories; None is the task's own rate."""
    if rate is None:
        rate = loss_rate(task, trajectories, budget.gradient_steps)
    return loss_optimizer(trajectories, rate)


def recipe_key(
    recipe: Recipe,
    budget: Budget,
    *,
    trajectories: str,
    rate: float | None,
    literal: bool,
) -> dict[str, object]:
    """Return a JSON-able key of all that determines the value function of a task.

    The gradient steps of the budget decide the rate if it is None.
    """
    key = {
        "recipe": asdict(recipe),
        "trajectories": trajectories,
        "literal": literal,
        "steps": budget.gradient_steps,
    }
    return key if rate is None else key | {"rate": rate}


def pack(trained: MetaTrained) -> Preparation:
    """Return a trained value function as a preparation."""
    facts = {
        "spread": trained.spread,
        "reach": trained.reach,
        "tasks": float(trained.recipe.tasks),
    }
    return Preparation(trained.queries, trained.value_function.state_dict(), facts)


def unpack(prepared: Preparation, recipe: Recipe) -> MetaTrained:
    """Return the value function that `pack` made a preparation of.

    Raises:
        ConfigError: if the preparation holds no value function.
    """
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

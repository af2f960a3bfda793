"""MetricOpt: learn a value function of phi, then fine-tune phi with its guidance.

Source: Huang et al., CVPR 2021, Alg. 1. `MetricOpt` differs from the pseudocode in the
recipe of meta-training (see `metricopt.recipe`) and in a step length that is a
multiple of the spread of phi, falling linearly to zero: rates in native units are not
portable between metrics. `LiteralMetricOpt` is the pseudocode as it stands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.health import check_health
from metricopt.meta_training import MetaTrained, Progress, meta_train
from metricopt.method import METHODS, Method
from metricopt.observations import Budget, Trajectories, concatenate
from metricopt.optimizer import Guidance, MetricOptimizer
from metricopt.recipe import LITERAL, RECIPE, Recipe
from metricopt.result import FinetuneResult, last_step
from metricopt.task import Task
from metricopt.trajectories import (
    LOSS_OPTIMIZERS,
    LinearDecay,
    OptimizerFactory,
    Stepper,
    collect,
    loss_optimizer,
    run,
    select_rate,
    starts,
)

TRIALS = 3
"""Fine-tuning runs each candidate step is tried with; each costs one query."""


@METHODS.register("metricopt")
@dataclass(frozen=True)
class MetricOpt(Method):
    """Meta-train a value function within the budget, then take guided steps.

    Attributes:
        recipe: how the value function is trained; its tasks are cut to the budget.
        optimizer: "sgd" or "adam": steps on u_t.
        trajectories: "sgd" or "adam": makes the loss trajectories.
        rate: learning rate of the loss trajectories; None selects it by the loss.
        steps: candidate lengths of the first step, in units of the spread of phi; the
            best on the observe split over `TRIALS` runs each, which are charged.
        health_tasks: held-out trajectories observed for a health check, as notes.
        trained: a value function trained before; its queries are charged all the same.
        progress: called with tasks done and tasks in all during meta-training.
    """

    recipe: Recipe = RECIPE
    optimizer: str = "sgd"
    trajectories: str = "sgd"
    rate: float | None = None
    steps: tuple[float, ...] = (0.2, 0.4, 0.8, 1.6)
    health_tasks: int = 0
    trained: MetaTrained | None = field(default=None, compare=False)
    progress: Progress | None = field(default=None, compare=False)

    def run(
        self, task: Task, budget: Budget, generator: torch.Generator, *, rows: int = 1
    ) -> FinetuneResult:
        """Train the value function once, then fine-tune all rows in lock-step."""
        trained = self.trained or self.train(task, budget, generator)
        queries = trained.queries
        notes = {"spread": trained.spread, "reach": trained.reach}
        if self.health_tasks:
            held_out = self.held_out(task, trained, generator)
            health = check_health(trained.value_function, held_out)
            notes |= {"spearman": health.spearman, "value_error": health.error}
            notes["health_spread"] = health.spread
            queries += held_out.costs.numel()

        def finetune(step: float, rows: int) -> Tensor:
            factory = self.guided(trained, budget.gradient_steps, generator, step=step)
            deviation = self.recipe.rollout.start_deviation
            start = starts(task.size, rows, deviation, generator)
            return run(task, factory, start, budget.gradient_steps, generator)[0]

        step, spent = choose_step(task, self.steps, finetune)
        result = last_step(finetune(step, rows), shared_queries=queries + spent)
        return replace(result, notes=notes | {"step": step})

    def train(
        self, task: Task, budget: Budget, generator: torch.Generator
    ) -> MetaTrained:
        """Meta-train the value function with the queries of the budget.

        Raises:
            ConfigError: if the budget does not allow a single trajectory.
        """
        recipe = self.fitted_recipe(budget)
        loss_factory = self.loss_factory(task, generator)
        return meta_train(task, recipe, loss_factory, generator, progress=self.progress)

    def fitted_recipe(self, budget: Budget) -> Recipe:
        """Return the recipe with as many tasks as a budget leaves for training.

        Raises:
            ConfigError: if the budget does not allow a single trajectory.
        """
        kept = self.health_tasks * self.recipe.rollout.observations
        return fit_budget(self.recipe, budget, kept + trial_queries(self.steps))

    def loss_factory(self, task: Task, generator: torch.Generator) -> OptimizerFactory:
        """Return the loss optimizer of the trajectories, its rate selected if None."""
        rate = self.rate or select_rate(
            task, self.trajectories, self.recipe.rollout, generator
        )
        return loss_optimizer(self.trajectories, rate)

    def guided(
        self,
        trained: MetaTrained,
        steps: int,
        generator: torch.Generator,
        *,
        step: float,
    ) -> OptimizerFactory:
        """Return the guided optimizer of the fine-tuning stage, over `steps` steps."""
        length = step * trained.spread

        def make(phi: torch.nn.Parameter) -> Stepper:
            # SGD is handed a gradient of that length; Adam's own step has it.
            adam = self.optimizer == "adam"
            rate = length / phi.shape[-1] ** 0.5 if adam else 1.0
            optimizer = LOSS_OPTIMIZERS[self.optimizer]([phi], lr=rate)  # type: ignore[call-arg]
            guided = MetricOptimizer(
                optimizer,
                trained.value_function,
                guidance=Guidance(
                    length=None if adam else length,
                    radius=trained.reach,
                ),
                generator=generator,
            )
            return LinearDecay(guided, optimizer, max(steps, 1))

        return make

    def held_out(
        self, task: Task, trained: MetaTrained, generator: torch.Generator
    ) -> Trajectories:
        """Collect trajectories after training, half of them guided."""
        rollout = self.recipe.rollout
        follow = self.guided(
            trained, rollout.steps, generator, step=self.recipe.step_share
        )
        guided = self.health_tasks // 2
        plans = (
            (self.health_tasks - guided, self.loss_factory(task, generator)),
            (guided, follow),
        )
        return concatenate(
            [
                collect(task, factory, rollout, rows=count, generator=generator)
                for count, factory in plans
                if count
            ]
        )


@METHODS.register("metricopt-literal")
@dataclass(frozen=True)
class LiteralMetricOpt(Method):
    """Algorithm 1 as published: plain SGD on u_t in native units, last step returned.

    Attributes:
        recipe: the published meta-training; its tasks are cut to the budget.
        rate: learning rate of the loss trajectories; None selects it by the loss.
        steps: candidates for alpha_t, which the paper does not give; chosen as above.
        trained: a value function trained before.
    """

    recipe: Recipe = LITERAL
    rate: float | None = None
    steps: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    trained: MetaTrained | None = field(default=None, compare=False)

    def run(
        self, task: Task, budget: Budget, generator: torch.Generator, *, rows: int = 1
    ) -> FinetuneResult:
        """Train the value function, choose alpha, fine-tune all rows."""
        trained = self.trained or self.train(task, budget, generator)

        def finetune(step: float, rows: int) -> Tensor:
            def factory(phi: torch.nn.Parameter) -> Stepper:
                optimizer = torch.optim.SGD([phi], lr=step)
                return MetricOptimizer(
                    optimizer, trained.value_function, generator=generator
                )

            deviation = self.recipe.rollout.start_deviation
            start = starts(task.size, rows, deviation, generator)
            return run(task, factory, start, budget.gradient_steps, generator)[0]

        step, spent = choose_step(task, self.steps, finetune)
        queries = trained.queries + spent
        result = last_step(finetune(step, rows), shared_queries=queries)
        return replace(result, notes={"step": step, "spread": trained.spread})

    def train(
        self, task: Task, budget: Budget, generator: torch.Generator
    ) -> MetaTrained:
        """Meta-train as published with the queries left after choosing alpha."""
        recipe = self.fitted_recipe(budget)
        rate = self.rate or select_rate(task, "sgd", recipe.rollout, generator)
        return meta_train(task, recipe, loss_optimizer("sgd", rate), generator)

    def fitted_recipe(self, budget: Budget) -> Recipe:
        """Return the recipe with as many tasks as a budget leaves for training."""
        return fit_budget(self.recipe, budget, trial_queries(self.steps))


def choose_step(
    task: Task, steps: Sequence[float], finetune: Callable[[float, int], Tensor]
) -> tuple[float, int]:
    """Return the step of least mean observed cost at the end, and the queries spent.

    Args:
        task: is queried.
        steps: candidates; a single one is taken without a query.
        finetune: path of phi [rows, T + 1, d] for a step and a number of rows.
    """
    if len(steps) == 1:
        return steps[0], 0
    costs = {
        step: task.observe(finetune(step, TRIALS)[:, -1]).mean().item()
        for step in steps
    }
    return min(steps, key=lambda step: costs[step]), trial_queries(steps)


def trial_queries(steps: Sequence[float]) -> int:
    """Return the queries `choose_step` spends."""
    return TRIALS * len(steps) if len(steps) > 1 else 0


def fit_budget(recipe: Recipe, budget: Budget, kept: int) -> Recipe:
    """Return the recipe with as many tasks as the budget's queries allow.

    Args:
        recipe: how to train.
        budget: limits the queries.
        kept: queries kept for what follows meta-training.

    Raises:
        ConfigError: if not a single trajectory is left.
    """
    observations = recipe.rollout.observations
    left = budget.queries - kept
    if recipe.queries_on == "train":
        # Two parts per block, each with one query at phi = 0.
        left = left * recipe.block * observations // (recipe.block * observations + 2)
    tasks = min(recipe.tasks, left // observations)
    if tasks < 1:
        raise ConfigError(
            f"a budget of {budget.queries} queries, {kept} of them kept for later, "
            f"allows no trajectory with {observations} observations"
        )
    return replace(recipe, tasks=tasks)

"""MetricOpt: learn a value function of phi, then fine-tune phi with its guidance.

Source: Huang et al., CVPR 2021, Alg. 1. `MetricOpt` differs from the pseudocode in the
recipe of meta-training (see `meta_training.RECIPE`) and in a step length that is a
share of the spread of phi, falling linearly to zero: rates in native units are not
portable between metrics. `LiteralMetricOpt` is the pseudocode as it stands.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.health import check_health
from metricopt.meta_training import LITERAL, RECIPE, MetaTrained, Recipe, meta_train
from metricopt.method import METHODS, Method
from metricopt.observations import Budget, Trajectories, concatenate
from metricopt.optimizer import Guidance, MetricOptimizer
from metricopt.result import FinetuneResult, last_step
from metricopt.task import Task
from metricopt.trajectories import (
    LOSS_OPTIMIZERS,
    LinearDecay,
    OptimizerFactory,
    Rollout,
    Stepper,
    collect,
    loss_optimizer,
    run,
    select_rate,
    starts,
)


@METHODS.register("metricopt")
@dataclass(frozen=True)
class MetricOpt(Method):
    """Meta-train a value function within the budget, then take guided steps.

    Attributes:
        recipe: how the value function is trained; its tasks are cut to the budget.
        optimizer: "sgd" or "adam": steps on u_t.
        trajectories: "sgd" or "adam": makes the loss trajectories.
        rate: learning rate of the loss trajectories; None selects it by the loss.
        step_share: first step length, in units of the spread of phi.
        health_tasks: held-out trajectories observed for a health check, as notes.
        trained: a value function trained before; its queries are charged all the same.
    """

    recipe: Recipe = RECIPE
    optimizer: str = "sgd"
    trajectories: str = "sgd"
    rate: float | None = None
    step_share: float = 0.4
    health_tasks: int = 0
    trained: MetaTrained | None = field(default=None, compare=False)

    def run(
        self, task: Task, budget: Budget, generator: torch.Generator, *, rows: int = 1
    ) -> FinetuneResult:
        """Train the value function once, then fine-tune all rows in lock-step."""
        trained = self.trained or self.train(task, budget, generator)
        queries, notes = trained.queries, {"spread": trained.spread}
        if self.health_tasks:
            held_out = self.held_out(task, trained, generator)
            health = check_health(trained.value_function, held_out)
            notes |= {"spearman": health.spearman, "health_error": health.error}
            queries += held_out.costs.numel()
        factory = self.guided(trained, budget.gradient_steps, generator)
        deviation = self.recipe.rollout.start_deviation
        start = starts(task.size, rows, deviation, generator)
        path, _ = run(task, factory, start, budget.gradient_steps, generator)
        return replace(last_step(path, shared_queries=queries), notes=notes)

    def train(
        self, task: Task, budget: Budget, generator: torch.Generator
    ) -> MetaTrained:
        """Meta-train the value function with the queries of the budget.

        Raises:
            ConfigError: if the budget does not allow a single trajectory.
        """
        recipe = fit_budget(self.recipe, budget, self.health_tasks)
        return meta_train(task, recipe, self.loss_factory(task, generator), generator)

    def loss_factory(self, task: Task, generator: torch.Generator) -> OptimizerFactory:
        """Return the loss optimizer of the trajectories, its rate selected if None."""
        rate = self.rate or select_rate(
            task, self.trajectories, self.recipe.rollout, generator
        )
        return loss_optimizer(self.trajectories, rate)

    def guided(
        self, trained: MetaTrained, steps: int, generator: torch.Generator
    ) -> OptimizerFactory:
        """Return the guided optimizer of the fine-tuning stage, over `steps` steps."""

        def make(phi: torch.nn.Parameter) -> Stepper:
            length = self.step_share * trained.spread
            # SGD is handed a gradient of that length; Adam's own step has it.
            adam = self.optimizer == "adam"
            rate = length / phi.shape[-1] ** 0.5 if adam else 1.0
            optimizer = LOSS_OPTIMIZERS[self.optimizer]([phi], lr=rate)  # type: ignore[call-arg]
            guidance = Guidance(
                length=None if adam else length,
                radius=self.recipe.reach * trained.spread,
            )
            guided = MetricOptimizer(
                optimizer,
                trained.value_function,
                guidance=guidance,
                generator=generator,
            )
            return LinearDecay(guided, optimizer, max(steps, 1))

        return make

    def held_out(
        self, task: Task, trained: MetaTrained, generator: torch.Generator
    ) -> Trajectories:
        """Collect trajectories after training, half of them guided."""
        rollout = self.recipe.rollout
        guided = self.health_tasks // 2
        plans = (
            (self.health_tasks - guided, self.loss_factory(task, generator)),
            (guided, self.guided(trained, rollout.steps, generator)),
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
    """Algorithm 1 as published: plain SGD on u_t in native units.

    Attributes:
        recipe: the published meta-training; its tasks are cut to the budget.
        rate: learning rate of the loss trajectories; None selects it by the loss.
        step_sizes: candidates for alpha_t, which the paper does not give; the best on
            the observe split over three runs each, whose queries are charged.
        trained: a value function trained before.
    """

    recipe: Recipe = LITERAL
    rate: float | None = None
    step_sizes: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    trained: MetaTrained | None = field(default=None, compare=False)

    def run(
        self, task: Task, budget: Budget, generator: torch.Generator, *, rows: int = 1
    ) -> FinetuneResult:
        """Train the value function, choose alpha, fine-tune all rows."""
        trained = self.trained or self.train(task, budget, generator)
        trials = {
            size: self._finetune(task, trained, (size, 3), budget, generator)
            for size in self.step_sizes
        }
        costs = {
            size: task.observe(path[:, -1]).mean() for size, path in trials.items()
        }
        best = min(costs, key=lambda size: costs[size].item())
        path = self._finetune(task, trained, (best, rows), budget, generator)
        queries = trained.queries + 3 * len(trials)
        notes = {"step_size": best, "spread": trained.spread}
        return replace(last_step(path, shared_queries=queries), notes=notes)

    def train(
        self, task: Task, budget: Budget, generator: torch.Generator
    ) -> MetaTrained:
        """Meta-train as published with the queries left after choosing alpha."""
        spare = Budget(budget.queries - 3 * len(self.step_sizes), budget.gradient_steps)
        recipe = fit_budget(self.recipe, spare)
        rate = self.rate or select_rate(task, "sgd", recipe.rollout, generator)
        return meta_train(task, recipe, loss_optimizer("sgd", rate), generator)

    def _finetune(
        self,
        task: Task,
        trained: MetaTrained,
        size_and_rows: tuple[float, int],
        budget: Budget,
        generator: torch.Generator,
    ) -> Tensor:
        size, rows = size_and_rows
        deviation = self.recipe.rollout.start_deviation
        start = starts(task.size, rows, deviation, generator)

        def factory(phi: torch.nn.Parameter) -> Stepper:
            return MetricOptimizer(
                torch.optim.SGD([phi], lr=size),
                trained.value_function,
                generator=generator,
            )

        return run(task, factory, start, budget.gradient_steps, generator)[0]


def fit_budget(recipe: Recipe, budget: Budget, health_tasks: int = 0) -> Recipe:
    """Return the recipe with as many tasks as the budget's queries allow.

    Raises:
        ConfigError: if that is none.
    """
    rollout: Rollout = recipe.rollout
    tasks = min(recipe.tasks, budget.queries // rollout.observations - health_tasks)
    if tasks < 1:
        raise ConfigError(
            f"a budget of {budget.queries} queries allows no trajectory with "
            f"{rollout.observations} observations each and {health_tasks} kept for the "
            "health check"
        )
    return replace(recipe, tasks=tasks)

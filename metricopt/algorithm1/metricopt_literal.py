"""Algorithm 1 exactly as published, for comparison: lines 1 to 8, then lines 9 to 16.

Source: Huang et al., CVPR 2021, Alg. 1.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.algorithm1.meta_preparation import (
    fitted_recipe,
    pack,
    recipe_key,
    suited_recipe,
    trajectory_factory,
    unpack,
)
from metricopt.algorithm1.meta_training import meta_train
from metricopt.algorithm1.optimizer import MetricOptimizer
from metricopt.algorithm1.recipe import LITERAL, MetaTrained, Progress, Recipe
from metricopt.algorithm1.step_choice import choose_step, trial_queries
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.result import Budget, FinetuneResult, last_step
from metricopt.tasks.descent import Stepper, Streams, paired_streams, run, starts
from metricopt.tasks.task import Task

TRAJECTORIES = "sgd"


@METHODS.register("metricopt-literal")
@dataclass(frozen=True)
class LiteralMetricOpt(Method):
    """Algorithm 1 as published: plain SGD on u_t in native units, last step returned.

    Attributes:
        recipe: the published meta-training; its tasks are cut to the budget.
        rate: learning rate of the loss trajectories; None for the one found for the
            task.
        steps: candidates for alpha_t, which the paper does not give. Each is tried in
            `TRIALS` runs, and the best on observe is taken; the queries are charged.
    """

    sees: ClassVar[Sees] = "loss gradients"
    recipe: Recipe = LITERAL
    rate: float | None = None
    steps: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)

    def fitted(self, budget: Budget) -> "LiteralMetricOpt":
        """Return the method with trajectories as long as the run it then guides."""
        return replace(self, recipe=suited_recipe(self.recipe, budget))

    def preparation_key(self, budget: Budget) -> dict[str, object]:
        """Return a JSON-able key of all that determines the value function of a task.

        Raises:
            ConfigError: if the budget does not allow a single trajectory.
        """
        return recipe_key(
            self._recipe(budget),
            budget,
            trajectories=TRAJECTORIES,
            rate=self.rate,
            literal=True,
        )

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Meta-train as published with the queries left after choosing alpha.

        Raises:
            ConfigError: if the budget does not allow a single trajectory.
        """
        recipe = self._recipe(budget)
        factory = trajectory_factory(
            task, budget, trajectories=TRAJECTORIES, rate=self.rate
        )
        return pack(meta_train(task, recipe, factory, generator, progress=progress))

    def value_function(self, prepared: Preparation) -> MetaTrained:
        """Return the value function of a preparation."""
        return unpack(prepared, self.recipe)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Train the value function, choose alpha, fine-tune all rows."""
        streams = paired_streams(generator)
        prepared = prepared or self.prepare(task, budget, generator)
        trained = self.value_function(prepared)

        def finetune(step: float, rows: int, streams: Streams) -> Tensor:
            def factory(phi: torch.nn.Parameter) -> Stepper:
                optimizer = torch.optim.SGD([phi], lr=step)
                return MetricOptimizer(
                    optimizer, trained.value_function, generator=streams.search
                )

            deviation = self.recipe.rollout.start_deviation
            start = starts(task.size, rows, deviation, streams.descent)
            return run(task, factory, start, budget.gradient_steps, streams.descent)[0]

        step, spent = choose_step(task, self.steps, finetune, streams.search)
        queries = trained.queries + spent
        result = last_step(finetune(step, rows, streams), shared_queries=queries)
        return replace(result, notes={"step": step, "spread": trained.spread})

    def _recipe(self, budget: Budget) -> Recipe:
        return fitted_recipe(self.recipe, budget, trial_queries(self.steps))

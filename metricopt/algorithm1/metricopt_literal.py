"""Algorithm 1 exactly as published, for comparison: lines 1 to 8, then lines 9 to 16.

Source: Huang et al., CVPR 2021, Alg. 1.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.algorithm1.meta_preparation import MetaTrainedMethod, suited_recipe
from metricopt.algorithm1.optimizer import MetricOptimizer
from metricopt.algorithm1.recipe import LITERAL, Recipe
from metricopt.algorithm1.step_choice import choose_step
from metricopt.methods.contract import METHODS, Preparation
from metricopt.methods.result import Budget, FinetuneResult, last_step
from metricopt.tasks.descent import Stepper, Streams, paired_streams, run, starts
from metricopt.tasks.task import Task


@METHODS.register("metricopt-literal")
@dataclass(frozen=True)
class LiteralMetricOpt(MetaTrainedMethod):
    """Algorithm 1 as published: plain SGD on u_t in native units, last step returned.

    Attributes:
        recipe: the published meta-training; its tasks are cut to the budget.
        rate: learning rate of the loss trajectories; None for the one found for the
            task.
        steps: candidates for alpha_t, which the paper does not give. Each is tried in
            `TRIALS` runs, and the best on observe is taken; the queries are charged.
    """

    literal: ClassVar[bool] = True
    recipe: Recipe = LITERAL
    rate: float | None = None
    steps: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)

    def fitted(self, budget: Budget) -> "LiteralMetricOpt":
        """Return the method with trajectories as long as the run it then guides."""
        return replace(self, recipe=suited_recipe(self.recipe, budget))

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

"""Algorithm 1 with steps that suit any metric: lines 1 to 8, then lines 9 to 16.

Source: Huang et al., CVPR 2021, Alg. 1. Differs in the recipe of meta-training (see
`metricopt.algorithm1.recipe`) and in the step length. Steps are a multiple of the
spread of phi and fall linearly to zero, because rates in native units do not carry over
from one metric to another. `metricopt-literal` is the pseudocode as published.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from metricopt.algorithm1.health import check_health, health_notes
from metricopt.algorithm1.meta_preparation import MetaTrainedMethod, suited_recipe
from metricopt.algorithm1.recipe import RECIPE, MetaTrained, Progress, Recipe
from metricopt.algorithm1.step_choice import (
    Geometry,
    choose_step,
    guided_optimizer,
)
from metricopt.algorithm1.trajectories import (
    GUIDED,
    LOSS,
    Kind,
    Trajectories,
    collect_kinds,
)
from metricopt.methods.contract import Method, Preparation
from metricopt.methods.known import Known, KnownValueFunction
from metricopt.methods.result import Budget, FinetuneResult, last_step
from metricopt.tasks.descent import Streams, paired_streams, run, starts
from metricopt.tasks.task import Task

CHECKED_SHARE, CHECKED_LEAST = 20, 4
"""One query in 20 goes to the health check, if that pays for 4 trajectories."""


@dataclass(frozen=True)
class GuidedMethod(MetaTrainedMethod):
    """Meta-train a value function within the budget, then take guided steps.

    Methods of this kind differ in the geometry of the steps.

    Attributes:
        recipe: how the value function is trained; its tasks are cut to the budget.
        optimizer: one of `PHI_OPTIMIZERS`, such as "sgd" or "adam", which takes the
            steps on u_t.
        trajectories: another one, which makes the loss trajectories.
        rate: learning rate of the loss trajectories; None for the one found for the
            task.
        steps: candidate lengths of the first step, in units of the spread of phi. Each
            is tried in `TRIALS` runs, and the best on observe is taken; the queries
            are charged.
        health_tasks: held-out trajectories of the health check, reported in the notes.
        known: the value function of another network, which replaces meta-training.
        start: where guided fine-tuning starts, [1, d] or [R, d]; None for random
            starts.
    """

    recipe: Recipe = RECIPE
    optimizer: str = "sgd"
    trajectories: str = "sgd"
    rate: float | None = None
    steps: tuple[float, ...] = (0.2, 0.4, 0.8, 1.6)
    health_tasks: int = 0
    known: KnownValueFunction | None = None
    start: Tensor | None = None

    def knowing(self, known: Known, adapter: Mapping[str, str]) -> Method:
        """Return the method with the value function of a like network; others raise."""
        if not isinstance(known, KnownValueFunction):
            return super().knowing(known, adapter)
        known.check(adapter)
        return replace(self, known=known)

    def starting(self, phi: Tensor) -> Self:
        """Return the method that fine-tunes from a phi, [1, d] or [R, d]."""
        return replace(self, start=phi)

    def fitted(self, budget: Budget) -> Self:
        """Return the method with trajectories and a health check fitted to a budget.

        Trajectories are as long as the run that is guided afterwards. A twentieth of
        the queries goes to a health check of the value function, if that pays for four
        trajectories or more.
        """
        recipe = suited_recipe(self.recipe, budget)
        checked = budget.queries // (CHECKED_SHARE * recipe.rollout.observations)
        if checked < CHECKED_LEAST:
            return replace(self, recipe=recipe)
        return replace(self, recipe=recipe, health_tasks=checked)

    def preparation_key(self, budget: Budget) -> dict[str, object] | None:
        """Return the key of a value function to be trained; None where it is known."""
        return None if self.known is not None else super().preparation_key(budget)

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Meta-train the value function, unless it is known."""
        if self.known is not None:
            return Preparation()
        return super().prepare(task, budget, generator, progress=progress)

    def value_function(self, prepared: Preparation) -> MetaTrained:
        """Return the value function of a preparation, or the known one."""
        known = self.known
        if known is not None:
            prepared = Preparation(0, known.tensors, known.facts)
        return super().value_function(prepared)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Train the value function once, then fine-tune all rows in lock-step."""
        streams = paired_streams(generator)
        prepared = prepared or self.prepare(task, budget, generator)
        trained, queries = self.value_function(prepared), prepared.queries
        notes = {"spread": trained.spread, "reach": trained.reach}
        held_out = self._held_out(task, budget, trained, streams.search)
        for kind, part in held_out.items():
            notes |= health_notes(kind, check_health(trained.value_function, part))
            queries += part.costs.numel()
        geometry = self._geometry(task, trained, streams.search)

        def finetune(step: float, rows: int, streams: Streams) -> Tensor:
            steps, search = budget.gradient_steps, streams.search
            factory = guided_optimizer(
                trained, self.optimizer, steps, step, search, geometry
            )
            deviation = self.recipe.rollout.start_deviation
            start = starts(task.size, rows, deviation, streams.descent)
            if self.start is not None:
                start = self.start.expand(rows, -1).clone()
            return run(task, factory, start, steps, streams.descent)[0]

        step, spent = choose_step(task, self.steps, finetune, streams.search)
        path = finetune(step, rows, streams)
        result = last_step(path, shared_queries=queries + spent)
        known = self.known or KnownValueFunction(prepared.tensors, prepared.facts)
        notes |= {"step": step, **geometry.notes()}
        return replace(result, notes=notes, known=(known,) * rows)

    @abstractmethod
    def _geometry(
        self, task: Task, trained: MetaTrained, generator: torch.Generator
    ) -> Geometry:
        """Return the geometry that steps are taken in; it costs no query."""

    def _recipe(self, budget: Budget, kept: int = 0) -> Recipe:
        checked = self.health_tasks * self.recipe.rollout.observations
        return super()._recipe(budget, kept + checked)

    def _held_out(
        self,
        task: Task,
        budget: Budget,
        trained: MetaTrained,
        generator: torch.Generator,
    ) -> dict[Kind, Trajectories]:
        """Collect trajectories after training, half of them guided."""
        if not self.health_tasks:
            return {}
        rollout, share = self.recipe.rollout, self.recipe.step_share
        factories = {
            LOSS: self._loss_factory(task, budget),
            GUIDED: guided_optimizer(
                trained, self.optimizer, rollout.steps, share, generator
            ),
        }
        half = self.health_tasks // 2
        rows = {LOSS: self.health_tasks - half, GUIDED: half}
        return collect_kinds(task, factories, rollout, rows=rows, generator=generator)

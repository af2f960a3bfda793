"""Lines 1 to 8: meta-training of the value function on fine-tuning trajectories.

Source: Huang et al., CVPR 2021, Alg. 1, lines 1-8, and Reptile (Nichol et al., 2018).
The settings are in `recipe`, which also says which are the paper's.
"""

import torch
from torch import Tensor

from metricopt.algorithm1.interpolation import Interpolator
from metricopt.algorithm1.objective import Points, equal_weight, join_points, objective
from metricopt.algorithm1.optimizer import Guidance, MetricOptimizer
from metricopt.algorithm1.recipe import MetaTrained, Progress, Recipe
from metricopt.algorithm1.trajectories import (
    GUIDED,
    KINDS,
    LOSS,
    Kind,
    Trajectories,
    collect_kinds,
    concatenate,
)
from metricopt.algorithm1.value_function import Standardisation, ValueFunction
from metricopt.process.keeping import one_thread
from metricopt.tasks.descent import OptimizerFactory, Stepper
from metricopt.tasks.task import Task


def meta_train(
    task: Task,
    recipe: Recipe,
    optimizer: OptimizerFactory,
    generator: torch.Generator,
    *,
    progress: Progress | None = None,
) -> MetaTrained:
    """Learn a value function of phi from trajectories of a task.

    The optimizer steps the trajectories' phi on the loss; progress is called after
    every block of trajectories.
    """
    training = MetaTraining(task, recipe, optimizer, generator)
    while not training.finished:
        training.advance()
        if progress is not None:
            progress(training.tasks_done, recipe.tasks)
    return training.result()


class MetaTraining:
    """The loop of lines 2 to 7, one block of trajectories at a time."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        optimizer: OptimizerFactory,
        generator: torch.Generator,
    ) -> None:
        self.task = task
        self.recipe = recipe
        self.loss_optimizer = optimizer
        self.generator = generator
        momentum = recipe.momentum
        self.value_function = ValueFunction(task.size, generator, momentum=momentum)
        self.adapted = ValueFunction(task.size, momentum=momentum)
        self.interpolators = {kind: Interpolator() for kind in KINDS}
        self.gamma = recipe.gamma
        self.costs = torch.empty(0)
        self.tasks_done = 0
        self.spread = 0.0
        self.reach = 0.0
        self.losses: list[float] = []
        self.memory: list[Points] = []
        self.queries = 0
        self.anchor: float | None = None

    @property
    def finished(self) -> bool:
        """Whether all tasks of the recipe are done."""
        return self.tasks_done >= self.recipe.tasks

    def advance(self) -> None:
        """Collect a block of trajectories and update the value function on it."""
        rows = min(self.recipe.block, self.recipe.tasks - self.tasks_done)
        parts = self._collect(rows)
        trajectories = concatenate(list(parts.values()))
        self._standardise(trajectories)
        offset = trajectories.phi - self.value_function.phi_mean
        self.reach = max(self.reach, offset.norm(dim=2).max().item())
        with one_thread():
            self._learn(self._interpolated(parts))

    def result(self) -> MetaTrained:
        """Return the value function with the weights the recipe asks for (line 8)."""
        initial = self.recipe.returned == "initial"
        chosen = self.value_function if initial else self.adapted
        return MetaTrained(
            chosen.eval(),
            self.recipe,
            self.queries,
            self.spread,
            self.reach,
            self.losses,
        )

    def _collect(self, rows: int) -> dict[Kind, Trajectories]:
        guided = round(rows * self.recipe.on_policy) if self.tasks_done else 0
        return collect_kinds(
            self.task,
            {LOSS: self.loss_optimizer, GUIDED: self._guided},
            self.recipe.rollout,
            rows={LOSS: rows - guided, GUIDED: guided},
            generator=self.generator,
            query=self._query,
        )

    def _query(self, phi: Tensor) -> Tensor:
        """Observe phi [M, d]; costs on a train part are corrected by phi = 0's cost."""
        if self.recipe.queries_on == "observe":
            self.queries += len(phi)
            return self.task.observe(phi)
        self.queries += len(phi) + 1
        beside = torch.cat([torch.zeros_like(phi[:1]), phi])
        costs = self.task.observe_train(beside, self.generator)
        if self.anchor is None:
            self.anchor = costs[0].item()
        difference: Tensor = costs[1:] - costs[0]
        return difference + self.anchor

    def _guided(self, phi: torch.nn.Parameter) -> Stepper:
        guidance = Guidance(
            length=self.recipe.step_share * self.spread,
            jitter=self.recipe.step_jitter,
            radius=self.recipe.growth * self.reach,
        )
        return MetricOptimizer(
            torch.optim.SGD([phi], lr=1.0),
            self.value_function,
            guidance=guidance,
            generator=self.generator,
        )

    def _standardise(self, trajectories: Trajectories) -> None:
        """Follow the costs as trajectories change; phi keeps the first block's frame.

        Distances of phi are the unit of steps and of the trust region.
        """
        self.costs = torch.cat([self.costs, trajectories.costs.flatten().float()])
        # A single observation has no deviation of its own.
        correction = min(1, self.costs.numel() - 1)
        mean = self.costs.mean()
        deviation = self.costs.std(correction=correction).clamp_min(1e-4)
        if not self.recipe.standardise_cost:
            mean, deviation = torch.zeros(()), torch.ones(())
        if self.tasks_done:
            self.value_function.rescale(mean, deviation)
            return
        phi = trajectories.phi.flatten(0, 1)
        centre = phi.mean(0)
        self.spread = (phi - centre).square().sum(1).mean().sqrt().item()
        self.value_function.standardise(
            Standardisation(centre, phi.std(0).clamp_min(1e-3), mean, deviation)
        )

    def _interpolated(self, parts: dict[Kind, Trajectories]) -> Points:
        """Return a block with its costs at every step, interpolated kind by kind."""
        found = []
        for kind, part in parts.items():
            mean, deviation = self.interpolators[kind].interpolate(part)
            found.append(Points(part.phi, mean, deviation))
        return join_points(found)

    def _learn(self, block: Points) -> None:
        """Update the value function on a block of trajectories, a group at a time."""
        if self.gamma is None:
            self.gamma = equal_weight(
                self.value_function, block, self.recipe, self.generator
            )
        order = torch.randperm(len(block.phi), generator=self.generator)
        for chosen in order.split(self.recipe.group):
            self._update(block.rows(chosen))
            self.tasks_done += len(chosen)

    def _update(self, batch: Points) -> None:
        """Lines 5, 6: w~ = inner steps from w on the batch; w <- w + eta (w~ - w)."""
        done = self.tasks_done / self.recipe.tasks
        eta = 1.0 - done if self.recipe.outer_rate == "linear" else 1.0
        joined = self._with_replay(batch)
        self.adapted.load_state_dict(self.value_function.state_dict())
        self.losses.append(self._adapt(self.adapted, joined))
        interpolate_weights(self.value_function, self.adapted, eta)

    def _with_replay(self, batch: Points) -> Points:
        if self.recipe.replay == 0:
            return batch
        known = len(self.memory)
        drawn = torch.randperm(known, generator=self.generator)[: self.recipe.replay]
        parts = [batch, *(self.memory[index] for index in drawn.tolist())]
        self.memory.append(batch)
        return join_points(parts)

    def _adapt(self, value_function: ValueFunction, batch: Points) -> float:
        """Line 5: take the inner steps on eq. (2), and return the last loss."""
        assert self.gamma is not None
        value_function.train()
        parameters = list(value_function.parameters())
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        inner = kind[self.recipe.inner_optimizer](parameters, lr=self.recipe.inner_rate)
        for _ in range(self.recipe.inner_steps):
            inner.zero_grad()
            loss = objective(
                value_function, batch, self.recipe, self.generator, gamma=self.gamma
            )
            loss.backward()
            inner.step()
        value_function.eval()
        return loss.item()


@torch.no_grad()
def interpolate_weights(
    initial: ValueFunction, adapted: ValueFunction, eta: float
) -> None:
    """Line 6, Reptile: w <- w + eta (w~ - w); batch-norm statistics are copied."""
    for weight, after in zip(initial.parameters(), adapted.parameters(), strict=True):
        weight.lerp_(after, eta)
    for statistic, newest in zip(initial.buffers(), adapted.buffers(), strict=True):
        statistic.copy_(newest)

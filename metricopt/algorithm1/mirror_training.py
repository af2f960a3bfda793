"""Meta-training of a geometry for phi, with the value function in place of the metric.

The geometry is learned over fine-tuning tasks like those of the value function: runs
of guided steps from random starts. What it is learned for is eq. (6), in which the
value function predicts the metric, so no metric query is made.

Source: Zhang, Li, Giannakis, arXiv 2312.13486, for the geometry; Huang et al., CVPR
2021, eq. (6), for the objective. To combine them is ours. Directions are constants, as
in first-order MAML, and so is the phi that a window begins with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from metricopt.adapters.blocks import PhiBlocks
from metricopt.algorithm1.recipe import MetaTrained
from metricopt.algorithm1.step_choice import Geometry, guided_optimizer
from metricopt.errors import require_counts, require_ranges, require_whole
from metricopt.geometry.block_iaf import BlockIAF
from metricopt.geometry.conditioners import Dense
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.mirror_optimizer import MirrorHealth, MirrorOptimizer
from metricopt.geometry.partition import vector_partition
from metricopt.learned_optimizers.objective import Objective
from metricopt.process.keeping import one_thread
from metricopt.tasks.descent import starts
from metricopt.tasks.task import Task

HIDDEN, EMBEDDING = 32, 16
"""Widths of the conditioners."""


@dataclass(frozen=True)
class MirrorRecipe:
    """How a geometry is meta-trained.

    Attributes:
        tasks: fine-tuning runs in all.
        block: runs side by side, each a row of phi.
        window: steps of a run between two updates of the geometry.
        rate: rate of Adam.
        clip: largest norm of the meta-gradient; longer ones are scaled down.
        metric_weight: weight lambda of the metric in eq. (6).

    Raises:
        ConfigError: if a setting is out of its range.
    """

    tasks: int = 320
    block: int = 16
    window: int = 10
    rate: float = 1e-3
    clip: float = 1.0
    metric_weight: float = 50.0

    def __post_init__(self) -> None:
        require_whole("tasks", self.tasks)
        require_counts("a recipe for a geometry", vars(self), "block", "window")
        require_ranges(
            "a recipe for a geometry",
            vars(self),
            tasks=">= 0",
            rate="> 0",
            clip="> 0",
            metric_weight=">= 0",
        )


def phi_geometry(blocks: PhiBlocks, generator: torch.Generator) -> BlockIAF:
    """Return the geometry of phi before it is trained, which is the identity.

    Scales stay between exp(-3) and exp(3), about 0.05 and 20.

    Args:
        blocks: places in phi of every block, as `Adapter.blocks` has them.
        generator: draws the weights.
    """
    return BlockIAF(
        *vector_partition(blocks),
        scale="clamped-exp",
        conditioner=Dense(HIDDEN, EMBEDDING),
        generator=generator,
    )


@dataclass(frozen=True)
class Window:
    """U steps of B runs, with what eq. (6) needs of them.

    Attributes:
        phi: visited phi, the first one before the first step, shape [U + 1, B, d].
        moves: what moved z in each step, shape [U, B, d].
        losses: loss at every phi, shape [U + 1, B].
        slopes: gradient of these losses, shape [U + 1, B, d].
        best: least predicted cost of all phi before the window, shape [B]; infinite in
            the first window of a run.
    """

    phi: Tensor
    moves: Tensor
    losses: Tensor
    slopes: Tensor
    best: Tensor


class LearnedGeometry(Geometry):
    """Places steps in the geometry of a mirror map.

    Attributes:
        mirror_map: the map.
        figures: what is known of it.
        last: the optimizer that was placed last; None before the first.
    """

    def __init__(
        self, mirror_map: MirrorMap, figures: Mapping[str, float] | None = None
    ) -> None:
        self.mirror_map = mirror_map
        self.figures = dict(figures or {})
        self.last: MirrorOptimizer | None = None

    def place(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Return the optimizer in the geometry."""
        self.last = MirrorOptimizer(optimizer, self.mirror_map)
        return self.last

    def notes(self) -> dict[str, float]:
        """Return what is known of the map, and the health of the last run."""
        health = MirrorHealth() if self.last is None else self.last.health
        return self.figures | {
            "mirror_cosine": health.cosine,
            "mirror_fallbacks": health.fallback_share,
        }


class MirrorTraining:
    """Meta-trains a geometry of phi.

    Args:
        task: gives losses; the metric is not queried.
        trained: the value function; runs start and step as its trajectories did.
        recipe: how the geometry is trained.
        generator: source of all randomness.

    Attributes:
        mirror_map: the geometry.
        objectives: eq. (6) in every window before its update.
        skipped: windows without an update, since their meta-gradient was not finite.
    """

    def __init__(
        self,
        task: Task,
        trained: MetaTrained,
        recipe: MirrorRecipe,
        generator: torch.Generator,
    ) -> None:
        self.task, self.trained, self.recipe = task, trained, recipe
        self.rollout, self.generator = trained.recipe.rollout, generator
        self.mirror_map = phi_geometry(task.blocks, generator)
        self._weights = list(self.mirror_map.parameters())
        self._adam = torch.optim.Adam(self._weights, lr=recipe.rate)
        self.objectives: list[float] = []
        self.skipped: list[int] = []

    def train(self) -> MirrorMap:
        """Run all tasks, and return the geometry."""
        for done in range(0, self.recipe.tasks, self.recipe.block):
            rows = min(self.recipe.block, self.recipe.tasks - done)
            for window in self.windows(self.mirror_map, rows, self.generator):
                with one_thread():
                    self._update(window)
        return self.mirror_map

    @torch.no_grad()
    def judge(self, mirror_map: MirrorMap, rows: int, seed: int) -> float:
        """Return eq. (6) of a map, the mean over new runs; nothing is learned.

        Equal seeds give equal starts and mini-batches.
        """
        generator = torch.Generator().manual_seed(seed)
        windows = self.windows(mirror_map, rows, generator)
        found = [self.objective(mirror_map, window) for window in windows]
        return torch.stack(found).mean().item()

    def windows(
        self, mirror_map: MirrorMap, rows: int, generator: torch.Generator
    ) -> Iterator[Window]:
        """Run guided steps in a geometry, which may change between two windows."""
        geometry = LearnedGeometry(mirror_map)
        rollout, share = self.rollout, self.trained.recipe.step_share
        factory = guided_optimizer(
            self.trained, "sgd", rollout.steps, share, generator, geometry
        )
        deviation = rollout.start_deviation
        phi = torch.nn.Parameter(starts(self.task.size, rows, deviation, generator))
        stepper = factory(phi)
        optimizer = geometry.last
        assert optimizer is not None
        best = torch.full((rows,), torch.inf)
        for first in range(0, rollout.steps, self.recipe.window):
            count = min(self.recipe.window, rollout.steps - first)
            visited, moves = [self._visit(phi, generator)], []
            for _ in range(count):
                stepper.step()
                moves.append(optimizer.move)
                visited.append(self._visit(phi, generator))
            phis, losses, slopes = map(torch.stack, zip(*visited, strict=True))
            window = Window(phis, torch.stack(moves), losses, slopes, best)
            yield window
            best = torch.minimum(best, self._predicted(phis).detach().amin(0))
            optimizer.invert()

    def objective(self, mirror_map: MirrorMap, window: Window) -> Tensor:
        """Return eq. (6) of a window, differentiable in the weights of a map."""
        path = replayed(mirror_map, window)
        metrics = self._predicted(path)
        before = torch.minimum(metrics[:1], window.best)
        # Exact in value and first derivative, without another pass of the network.
        losses = window.losses + ((path - window.phi) * window.slopes).sum(2)
        judged = Objective(
            metric_weight=self.recipe.metric_weight, sharpness=self.rollout.steps / 2
        )
        return judged.value(losses, torch.cat([before, metrics[1:]])).mean()

    def _update(self, window: Window) -> None:
        objective = self.objective(self.mirror_map, window)
        slopes = torch.autograd.grad(objective, self._weights)
        for weight, slope in zip(self._weights, slopes, strict=True):
            weight.grad = slope
        norm = torch.nn.utils.clip_grad_norm_(self._weights, self.recipe.clip)
        if bool(norm.isfinite()):
            self._adam.step()
        else:
            self.skipped.append(len(self.objectives))
        self.objectives.append(objective.item())

    def _predicted(self, phi: Tensor) -> Tensor:
        """Return the predicted cost of phi [U, B, d], shape [U, B].

        No cost is negative: without the bound, a geometry learns to go where the value
        function promises one, and eq. (6) is relative to a number near zero.
        """
        predicted: Tensor = self.trained.value_function(phi.flatten(0, 1))
        return predicted.view(phi.shape[:2]).clamp_min(0.0)

    def _visit(
        self, phi: torch.nn.Parameter, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Leave the loss gradient in `phi.grad`; return phi, loss and gradient."""
        with torch.enable_grad():
            losses = self.task.losses(phi, generator)
            (slope,) = torch.autograd.grad(losses.sum(), phi)
        # The guided step overwrites its gradient.
        phi.grad = slope.clone()
        return phi.detach().clone(), losses.detach(), slope


def replayed(mirror_map: MirrorMap, window: Window) -> Tensor:
    """Return the phi of a window, [U + 1, B, d], differentiable in the map's weights.

    phi_t = g(g^{-1}(phi_0) + v_1 + ... + v_t), with the moves v as they were. The
    values are those of the run, also where a step fell back.
    """
    start = vmap(mirror_map.inverse)(window.phi[0])
    z = start + torch.cat([torch.zeros_like(start)[None], window.moves.cumsum(0)])
    path: Tensor = vmap(vmap(mirror_map))(z)
    return window.phi + path - path.detach()

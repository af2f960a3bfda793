"""Meta-training: the loop over tasks that learns the weights of an optimizer.

Source: Huang et al., CVPR 2021, supplement B; Metz et al., arXiv 1810.10180. Differs:
the training goes back to its best weights if it diverges.
"""

import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from metricopt.checkpoints.gradient_norms import GradientNorms
from metricopt.checkpoints.loop import run_to_end
from metricopt.checkpoints.state import digest_of, start_of
from metricopt.errors import ConfigError, LossError, ShapeError, require_kind
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.inner_tasks import InnerTasks, TasksOf
from metricopt.learned_optimizers.meta_gradient import MetaGradient
from metricopt.learned_optimizers.objective import Objective
from metricopt.learned_optimizers.settings import OptimizerTrained, OptimizerTraining
from metricopt.learned_optimizers.unroll import Unroll
from metricopt.process.seeding import globally_seeded, make_generator

AT_START = (
    "the losses of the tasks, or their gradients, are not finite at phi_0, before any "
    "step: look at `starts` and `losses` of the tasks"
)
SHORTER = "use a smaller scale of steps, or a shorter horizon"
"""What helps where meta-gradients are not finite."""


def train_optimizer(
    optimizer: LearnedOptimizer,
    tasks: TasksOf,
    settings: OptimizerTraining | None = None,
    *,
    held_out: InnerTasks | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    show: bool = True,
) -> OptimizerTrained:
    """Train an optimizer in place.

    Iteration i takes the tasks of the numbers i B to i B + B - 1, and draws its noise
    from i and the seed. So a training that was killed and is called again ends with
    the same bits as one that was not.

    Args:
        optimizer: trained where it is: move it to the device of the tasks before.
        tasks: from numbers to tasks; a number must always give the same one.
        settings: length, estimator, objective and rate.
        held_out: tasks for validation, always the same. The weights with the least
            objective on them are kept, and where it rises above its first value the
            training goes back to them. Without any, the last weights are kept.
        checkpoint: a file for the state, to go on from; removed by nobody.
        show: whether a terminal shows a bar with the time left.

    Returns:
        What happened: objectives, meta-gradients, steps left out, runs stopped.

    Raises:
        ConfigError: if the checkpoint is of another training, the tasks have no metric
            and one is asked for, their starts are of half precision or integers, or
            some weights of the optimizer are frozen.
        LossError: if the losses of tasks are not differentiable, or the objective of
            the held-out tasks is not finite before training.
        ShapeError: if the tasks are not as many as their numbers, or do not give a
            loss for every copy of every task.
        DataError: if the checkpoint is damaged.
        DivergedError: if the meta-gradient is not finite over and over.
    """
    settings = OptimizerTraining() if settings is None else settings
    require_kind("optimizer", optimizer, LearnedOptimizer, "a LearnedOptimizer")
    require_kind("tasks", tasks, Callable, "a function from numbers to InnerTasks")
    require_kind("settings", settings, OptimizerTraining, "OptimizerTraining(...)")
    if held_out is not None:
        require_kind("held_out", held_out, InnerTasks, "InnerTasks, made")
    asked = {each.requires_grad for each in optimizer.parameters()}
    if len(asked) > 1:
        raise ConfigError(
            "train_optimizer trains all weights of an optimizer, got some with "
            "requires_grad=False, which would be trained, too"
        )
    run = _Run(optimizer, tasks, settings, held_out)
    run_to_end(run, checkpoint, show=show)
    return run.finish()


@torch.no_grad()
def mean_objective(
    optimizer: LearnedOptimizer, tasks: InnerTasks, objective: Objective
) -> float:
    """Return the objective of an optimizer over its horizon, averaged over tasks."""
    runs = Unroll(optimizer, tasks, supervised=objective.metric_weight > 0)
    found = runs.advance(optimizer.horizon)
    return float(objective.value(found.losses, found.costs).mean().item())


class _Run:
    """A meta-training between two iterations."""

    def __init__(
        self,
        optimizer: LearnedOptimizer,
        tasks: TasksOf,
        settings: OptimizerTraining,
        held_out: InnerTasks | None,
    ) -> None:
        self.optimizer, self.settings = optimizer, settings
        self.tasks, self.held_out = tasks, held_out
        self.weights = list(optimizer.parameters())
        self.adam = torch.optim.Adam(self.weights, settings.rate)
        self.gradient = MetaGradient(optimizer, settings)
        self.first: InnerTasks | None = None
        self.done, self.kept, self.frozen, self.inner_steps = 0, 0, 0, 0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.norms = GradientNorms(settings.iterations)
        self.shares: list[float] = []
        self.validations: dict[int, float] = {}
        self.restarts: list[int] = []
        self.best: Tensor | None = None

    def key(self) -> str:
        """Return what tells one training from another: settings, start, first tasks."""
        settings = asdict(replace(self.settings, save_every=0.0))
        form = f"{type(self.optimizer).__name__} {self.optimizer.settings()}"
        validated = self.held_out is not None
        # What earlier versions did not know stands behind what they did.
        known = f"{settings}, optimizer {form}, validated {validated}"
        # Kept for the first iteration: drawing may be slow.
        self.first = self._drawn(self.settings.numbers(0))
        tasks = f"tasks {self._digest_of(self.first)}"
        if self.held_out is not None:
            tasks += f", held out {self._digest_of(self.held_out)}"
        return f"{known}, start {start_of(self.optimizer)}, {tasks}"

    def _drawn(self, numbers: Sequence[int]) -> InnerTasks:
        batch = self.tasks(numbers)
        _check(self.optimizer, batch, len(numbers))
        return batch

    def _digest_of(self, tasks: InnerTasks) -> str:
        """Return what tells tasks from others: their starts, and the losses there.

        Two digits of the losses, since sums of the same tasks may differ in the last.
        """
        with globally_seeded(0, self.weights[0].device):
            losses = Unroll(self.optimizer, tasks).advance(0).losses
        rounded = [float(f"{loss:.2g}") for loss in losses.flatten().tolist()]
        return digest_of([tasks.starts(), torch.tensor(rounded)])

    @property
    def trained(self) -> LearnedOptimizer:
        """The optimizer."""
        return self.optimizer

    @property
    def said(self) -> str:
        """The last objective, the best one and what was left out, in a few words."""
        parts = [f"objective {self.losses[-1]:.3g}"]
        best = self.validations.get(self.kept)
        parts += [] if best is None else [f"best {best:.4g}"]
        parts += [f"{len(self.norms.skipped)} skipped"] if self.norms.skipped else []
        return ", ".join(parts)

    def step(self) -> None:
        """Take the steps of one iteration, and validate if that is due."""
        if not self.done:
            self._validate()
        iteration, settings = self.done, self.settings
        numbers = settings.numbers(iteration)
        length = settings.length(iteration, self.optimizer.horizon)
        batch, self.first = self.first, None
        if batch is None or iteration:
            batch = self._drawn(numbers)
        if not iteration and settings.objective.loss_term == "log-ratio":
            self._warn_below_zero(batch)
        noise = make_generator("optimizer noise", settings.seed, iteration)
        self.gradient.begin(batch, length, noise)
        total = 0.0
        for steps in settings.windows(length):
            gradient = self.gradient.window(steps)
            total += self.gradient.loss
            self._update(gradient)
        self.losses.append(total)
        self.frozen += self.gradient.frozen
        self.inner_steps += length * settings.copies * len(numbers)
        self.done += 1
        last = self.done == settings.iterations
        if last or self.done % settings.validate_every == 0:
            self._validate()

    @torch.no_grad()
    def _warn_below_zero(self, batch: InnerTasks) -> None:
        """Warn of losses whose logarithm would be taken, though they are below 0."""
        with globally_seeded(0, self.weights[0].device):
            losses = batch.losses(batch.starts().detach()[None], 0)
        if below := int((losses < 0).sum()):
            warnings.warn(
                f"{below} of {losses.numel()} losses are below 0 at phi_0 and count "
                'as 0, as logarithms are taken: use Objective(loss_term="sum")',
                stacklevel=5,
            )

    def _update(self, gradient: Tensor) -> None:
        """Take a step of Adam on a meta-gradient, unless it is not finite."""
        norm = gradient.norm().item()
        if self.settings.estimator == "merged":
            self.shares.append(self.gradient.share)
        if not self.norms.allows_step(norm, self.done, self._advice):
            return
        scaled = gradient * min(1.0, self.settings.clip / max(norm, 1e-30))
        for weight, piece in zip(self.weights, self._pieces(scaled), strict=True):
            weight.grad = piece.clone()
        self.adam.step()

    @property
    def _advice(self) -> str:
        """What helps where meta-gradients are not finite."""
        if self.gradient.hopeless:
            return AT_START
        if self.settings.estimator == "strategies":
            return SHORTER
        return f"{SHORTER}, or the estimator 'strategies'"

    def _validate(self) -> None:
        """Judge the weights; keep them, or go back to those that were best."""
        if self.held_out is None:
            return
        objective = self.settings.objective
        score = mean_objective(self.optimizer, self.held_out, objective)
        if self.best is None and not math.isfinite(score):
            raise LossError(
                f"the objective of the held-out tasks must be finite before training, "
                f"got {score}: look at their `starts`, `losses` and `costs`"
            )
        self.inner_steps += self.optimizer.horizon * len(self.held_out.starts())
        self.validations[self.done] = score
        if self.best is None or score < self.validations[self.kept]:
            self.best = parameters_to_vector(self.weights).detach().clone()
            self.kept = self.done
        elif not score <= self.validations[0]:
            self.restarts.append(self.done)
            self._load(self.best)
            self.adam = torch.optim.Adam(self.weights, self.settings.rate)

    def _load(self, weights: Tensor) -> None:
        with torch.no_grad():
            for own, kept in zip(self.weights, self._pieces(weights), strict=True):
                own.copy_(kept)

    def _pieces(self, flat: Tensor) -> list[Tensor]:
        sizes = [weight.numel() for weight in self.weights]
        pairs = zip(self.weights, flat.split(sizes), strict=True)
        return [piece.view_as(weight) for weight, piece in pairs]

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        norms = self.norms
        return {
            "optimizer": self.optimizer.state_dict(),
            "adam": self.adam.state_dict(),
            "gradient": self.gradient.state(),
            "best": self.best,
            "lists": (self.losses, norms.every, norms.skipped, self.shares),
            "validated": (self.validations, self.restarts),
            "numbers": (
                self.done,
                self.kept,
                self.frozen,
                self.inner_steps,
                self.seconds,
            ),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.adam.load_state_dict(state["adam"])
        self.gradient.restore(state["gradient"])
        self.best = state["best"]
        norms = self.norms
        self.losses, norms.every, norms.skipped, self.shares = state["lists"]
        self.validations, self.restarts = state["validated"]
        numbers = state["numbers"]
        self.done, self.kept, self.frozen, self.inner_steps, self.seconds = numbers

    def finish(self) -> OptimizerTrained:
        """Return to the best weights, and say what happened."""
        if self.best is None:
            self.kept = self.done
        else:
            self._load(self.best)
        self.adam.zero_grad()
        self.norms.warn()
        return OptimizerTrained(
            tuple(self.losses),
            tuple(self.norms.every),
            tuple(self.norms.skipped),
            self.frozen,
            tuple(self.shares),
            self.validations,
            tuple(self.restarts),
            self.kept,
            self.inner_steps,
            self.seconds,
        )


def _check(optimizer: LearnedOptimizer, tasks: InnerTasks, count: int) -> None:
    require_kind("tasks", tasks, InnerTasks, "InnerTasks from the function of numbers")
    starts = tasks.starts()
    shape = list(starts.shape)
    if len(shape) != 2 or shape[0] != count:
        raise ShapeError(
            f"the starts of {count} tasks must have shape [{count}, d], got {shape}"
        )
    if starts.dtype not in (torch.float32, torch.float64):
        kind = str(starts.dtype).removeprefix("torch.")
        raise ConfigError(f"the starts of tasks must be float32 or float64, got {kind}")
    optimizer.check_precision(starts, "the starts of tasks")

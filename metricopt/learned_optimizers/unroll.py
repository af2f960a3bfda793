"""Runs of a learned optimizer on tasks, many in lock-step, with and without a graph."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from metricopt.errors import LossError, ShapeError, require_kind
from metricopt.learned_optimizers.contract import LearnedOptimizer, Seen, State
from metricopt.learned_optimizers.inner_tasks import InnerTasks

Derivatives = Literal["none", "first", "full"]
"""What a run can be differentiated through.

"none": nothing. "first": the steps, but gradients and metrics that the optimizer sees
are constants. "full": those, too, which takes second derivatives of the loss.
"""
DETACHED = (
    "the losses of tasks must be differentiable in the phi that they are given, got "
    "losses that do not depend on it: make them of phi itself, without detach, item or "
    "no_grad"
)
NEVER = -1
"""The step of a run that was not stopped."""


class Values(NamedTuple):
    """What runs went through so far.

    Attributes:
        losses: at phi_0 to phi_t, shape [t + 1, C, B].
        costs: the same of the metric; None where it was not asked for.
    """

    losses: Tensor
    costs: Tensor | None


class Unroll:
    """C copies of an optimizer on each of B tasks, window by window.

    A run whose loss, gradient or step is not finite stays at its last finite phi, and
    at the loss it had there; if that is so at phi_0, the run never moves. ShapeError is
    raised if tasks do not give a number for every run, and LossError if their losses
    are not differentiable.

    Args:
        optimizer: moves phi; its own weights are used unless others are given.
        tasks: B tasks.
        copies: C.
        derivatives: what a window can be differentiated through.
        supervised: whether the metric is asked for at every step; else only where the
            optimizer is shown it.

    Attributes:
        step: steps taken.
        frozen_at: step at which a run was stopped, or `NEVER`, shape [C, B].
    """

    def __init__(
        self,
        optimizer: LearnedOptimizer,
        tasks: InnerTasks,
        *,
        copies: int = 1,
        derivatives: Derivatives = "none",
        supervised: bool = False,
    ) -> None:
        self._optimizer, self._tasks = optimizer, tasks
        self._derivatives, self._supervised = derivatives, supervised
        start = tasks.starts().detach()
        self._shape = (copies, len(start))
        # Runs are rows [C * B] here, and [C, B] to the tasks.
        self._phi = start.expand(copies, *start.shape).flatten(0, 1)
        self.step = 0
        self._frozen_at = torch.full_like(self._phi[:, 0], NEVER, dtype=torch.long)
        self._state: State = optimizer.start(self._phi)
        with self._recording():
            self._loss, self._gradient = self._evaluated(self._phi)
            wrong = ~(self._loss.isfinite() & self._gradient.isfinite().all(1))
            self._frozen_at = self._frozen_at.masked_fill(wrong, 0)
            self._shown = torch.zeros_like(self._loss)
            self._losses = [self._loss]
            self._costs = [self._cost()] if supervised else []

    @property
    def phi(self) -> Tensor:
        """The parameters now, shape [C, B, d]."""
        phi: Tensor = self._phi.unflatten(0, self._shape)
        return phi

    @property
    def frozen_at(self) -> Tensor:
        """The step at which a run was stopped, or `NEVER`; shape [C, B]."""
        frozen_at: Tensor = self._frozen_at.unflatten(0, self._shape)
        return frozen_at

    def advance(self, steps: int, weights: Tensor | None = None) -> Values:
        """Take some steps, and return what the runs went through from phi_0 on.

        What was before the window is a constant to its gradient.

        Args:
            steps: number of steps.
            weights: weights of every run, shape [C, B, W]; None for the optimizer's.
        """
        self._cut()
        named = None if weights is None else self._named(weights.flatten(0, 1))
        with self._recording():
            for _ in range(steps):
                self._advance(named)
        losses = torch.stack(self._losses).unflatten(1, self._shape)
        if not self._supervised:
            return Values(losses, None)
        return Values(losses, torch.stack(self._costs).unflatten(1, self._shape))

    def _advance(self, weights: State | None) -> None:
        optimizer = self._optimizer
        if optimizer.observes(self.step):
            cost = self._costs[-1] if self._supervised else self._cost()
            shown = self._tasks.shown(cost.unflatten(0, self._shape), self.step)
            shown = shown.flatten().to(cost)
            self._shown = shown if self._derivatives == "full" else shown.detach()
        seen = Seen(self._phi, self._gradient, self._loss, self._shown, self.step)
        move, self._state = _moved(optimizer, weights, seen, self._state)
        self.step += 1
        self._move_to(self._phi + move)
        self._losses.append(self._loss)
        if self._supervised:
            self._costs.append(self._cost())

    def _move_to(self, phi: Tensor) -> None:
        """Take a step, but where it leads to what is not finite."""
        good = phi.isfinite().all(1) & (self._frozen_at == NEVER)
        phi = torch.where(good[:, None], phi, self._phi)
        loss, gradient = self._evaluated(phi)
        good = good & loss.isfinite() & gradient.isfinite().all(1)
        self._phi = torch.where(good[:, None], phi, self._phi)
        self._gradient = torch.where(good[:, None], gradient, self._gradient)
        self._loss = torch.where(good, loss, self._loss)
        stopped = ~good & (self._frozen_at == NEVER)
        self._frozen_at = self._frozen_at.masked_fill(stopped, self.step)

    def _evaluated(self, phi: Tensor) -> tuple[Tensor, Tensor]:
        """Return losses [C * B] and their gradients [C * B, d]."""
        full, none = self._derivatives == "full", self._derivatives == "none"
        with torch.enable_grad():
            at = phi if phi.requires_grad else phi.detach().requires_grad_()
            losses = self._tasks.losses(at.unflatten(0, self._shape), self.step)
            _check_shape("losses", losses, self._shape)
            losses = losses.flatten()
            gradient = None
            if losses.requires_grad:
                (gradient,) = torch.autograd.grad(
                    losses.sum(),
                    at,
                    create_graph=full,
                    retain_graph=not none,
                    allow_unused=True,
                )
        if gradient is None:
            raise LossError(DETACHED)
        if none:
            losses = losses.detach()
        return losses, gradient if full else gradient.detach()

    def _cost(self) -> Tensor:
        cost = self._tasks.costs(self.phi, self.step)
        _check_shape("costs", cost, self._shape)
        cost = cost.flatten().to(self._phi.dtype)
        return cost.detach() if self._derivatives == "none" else cost

    def _cut(self) -> None:
        """Make all that was before a constant."""
        for name in ("_phi", "_loss", "_gradient", "_shown"):
            setattr(self, name, getattr(self, name).detach())
        self._state = {name: value.detach() for name, value in self._state.items()}
        self._losses = [loss.detach() for loss in self._losses]
        self._costs = [cost.detach() for cost in self._costs]

    @contextmanager
    def _recording(self) -> Iterator[None]:
        with torch.set_grad_enabled(self._derivatives != "none"):
            yield

    def _named(self, weights: Tensor) -> State:
        """Return weights [N, W] by name, each [N, ...]."""
        own = dict(self._optimizer.named_parameters())
        pieces = weights.split([each.numel() for each in own.values()], dim=1)
        return {
            name: piece.view(len(weights), *each.shape)
            for (name, each), piece in zip(own.items(), pieces, strict=True)
        }


def _check_shape(name: str, values: Tensor, shape: tuple[int, int]) -> None:
    """Raise ShapeError unless tasks gave a number for every copy and task."""
    require_kind(f"the {name} of tasks", values, Tensor, "a tensor [C, B]")
    if values.shape != shape:
        raise ShapeError(
            f"the {name} of tasks must have shape [C, B] = {list(shape)}, a number for "
            f"every copy of every task, got {list(values.shape)}"
        )


def _moved(
    optimizer: LearnedOptimizer, weights: State | None, seen: Seen, state: State
) -> tuple[Tensor, State]:
    """Return the moves of N runs, each with weights of its own if there are any."""
    if weights is None:
        found: tuple[Tensor, State] = optimizer(seen, state)
        return found

    def one(weights: State, seen: Seen, state: State) -> tuple[Tensor, State]:
        moved: tuple[Tensor, State] = functional_call(optimizer, weights, (seen, state))
        return moved

    every = Seen(0, 0, 0, 0, None)  # type: ignore[arg-type]
    mapped: tuple[Tensor, State] = vmap(one, in_dims=(0, every, 0))(
        weights, seen, state
    )
    return mapped

"""What a method returns: the chosen phi, what it spent, and the way there."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from metricopt.methods.known import Known


@dataclass(frozen=True)
class Checkpoint:
    """A state a method passed through, for curves over queries and steps.

    Attributes:
        step: gradient steps taken by each row so far.
        queries: metric queries one row is charged with so far, shared ones included.
        phi: what the method would return if stopped here, shape [R, d].
        cost: observed cost of that phi, shape [R], NaN where it was never observed.
    """

    step: int
    queries: int
    phi: Tensor
    cost: Tensor


@dataclass(frozen=True)
class Evidence:
    """Why a phi was chosen, or phi = 0, and what is expected of it elsewhere.

    Attributes:
        reason: in one or two plain sentences.
        gain: expected decrease of the cost on examples that chose nothing, in [-1, 1];
            None if nothing is known of it.
        error: standard error of the gain.
        identified: queries after which the value function predicted the metric; None
            if it never did.
        trials: predicted and observed cost of every phi the value function chose, in
            order.
    """

    reason: str
    gain: float | None = None
    error: float | None = None
    identified: int | None = None
    trials: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class FinetuneResult:
    """What a method chose, what it spent, and how it got there.

    Attributes:
        phi: chosen adapter parameters, one row per meta-test, shape [R, d].
        queries: metric queries charged to each row, including meta-training.
        shared_queries: the part of `queries` spent once for all rows (meta-training).
        gradient_steps: steps of fine-tuning taken by each row.
        checkpoints: the way there, in order of steps and queries.
        notes: further figures a method reports (health of a value function, ...).
        evidence: evidence of every row, from methods that ask for it; else empty.
        known: what every row learned of the metric, for use on other networks; empty
            from methods that learn nothing.
    """

    phi: Tensor
    queries: int
    shared_queries: int
    gradient_steps: int
    checkpoints: tuple[Checkpoint, ...]
    notes: dict[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    known: tuple[Known, ...] = ()


def last_step(path: Tensor, *, shared_queries: int) -> FinetuneResult:
    """Return the last phi of a path [R, T + 1, d], with checkpoints on the way."""
    steps = path.shape[1] - 1
    unknown = torch.full((len(path),), torch.nan, dtype=torch.float64)
    checkpoints = tuple(
        Checkpoint(step, shared_queries, path[:, step], unknown)
        for step in checkpoint_steps(steps)
    )
    return FinetuneResult(
        path[:, -1], shared_queries, shared_queries, steps, checkpoints
    )


def best_so_far(path: Tensor, costs: Tensor, *, first_step: int = 0) -> FinetuneResult:
    """Return the best observed phi of a path [R, S, d] with costs [R, S].

    Args:
        path: phi at consecutive steps, all observed, shape [R, S, d].
        costs: their costs, shape [R, S].
        first_step: gradient steps taken before the first of them.
    """
    rows, observed = costs.shape
    checkpoints = []
    for step in checkpoint_steps(observed - 1):
        cost, best = costs[:, : step + 1].min(1)
        phi = path[torch.arange(rows), best]
        checkpoints.append(Checkpoint(first_step + step, step + 1, phi, cost))
    last = checkpoints[-1]
    return FinetuneResult(last.phi, observed, 0, last.step, tuple(checkpoints))


def checkpoint_steps(steps: int, count: int = 10) -> list[int]:
    """Return about `count` + 1 evenly spaced steps, 0 and the last included."""
    return sorted({round(steps * part / count) for part in range(count + 1)})

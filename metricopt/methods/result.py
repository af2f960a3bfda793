"""What a method may spend, and what it returns: the chosen phi, and the way there."""

from collections import Counter
from dataclasses import dataclass, field

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.estimate import SeenOnParts
from metricopt.methods.attempts import Attempt
from metricopt.methods.bounds import Front
from metricopt.methods.known import Known
from metricopt.metrics.constrained import constrained_cost
from metricopt.tasks.task import Task


@dataclass(frozen=True)
class Budget:
    """What a method may spend for one result.

    Attributes:
        queries: metric queries, including meta-training; 0 means none.
        gradient_steps: steps of fine-tuning T.
    """

    queries: int
    gradient_steps: int

    def __post_init__(self) -> None:
        if self.queries < 0 or self.gradient_steps < 0:
            raise ConfigError(
                "a budget needs queries >= 0 and gradient_steps >= 0, got "
                f"queries={self.queries}, gradient_steps={self.gradient_steps}"
            )


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
        met: for every bound, the probability that it is met on other data;
            empty where there are none, or nothing is known of it.
        met_before: the same of the untouched network.
        front: what can be had of the objective and the bounded metrics; None without
            bounds.
        seen: what phi gained on parts of the observe split; None if it was not checked
            on any, or bounds make the cost more than the objective's.
    """

    reason: str
    gain: float | None = None
    error: float | None = None
    identified: int | None = None
    trials: tuple[tuple[float, float], ...] = ()
    met: tuple[float, ...] = ()
    met_before: tuple[float, ...] = ()
    front: Front | None = None
    seen: SeenOnParts | None = None


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
        obvious: what every row tried that anybody would try by hand; empty from methods
            that try none of it.
    """

    phi: Tensor
    queries: int
    shared_queries: int
    gradient_steps: int
    checkpoints: tuple[Checkpoint, ...]
    notes: dict[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    known: tuple[Known, ...] = ()
    obvious: tuple[tuple[Attempt, ...], ...] = ()


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

    All were observed, at consecutive steps from `first_step` on.
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


CHECKPOINTS = (1, 10, 20, 50, 100, 150, 250, 500, 750, 1_000, 1_500, 2_500, 5_000)


class Archive:
    """All queries of R searches in lock-step; the first of each is phi = 0.

    The budget limits the queries of every row.

    Attributes:
        phi: what was queried, shape [R, n, d].
        costs: costs of it, shape [R, n].
        each: what `Task.observe_each` said, shape [R, n, 1 + M].

    Raises:
        ConfigError: if the budget allows no query.
    """

    def __init__(self, task: Task, budget: Budget, rows: int) -> None:
        if budget.queries < 1:
            raise ConfigError("a search by queries needs a budget of at least 1 query")
        self.task = task
        self.budget = budget
        self.rows = rows
        self.phi = torch.empty(rows, 0, task.size)
        columns = 1 if task.bounds is None else 1 + len(task.bounds.names)
        self.costs = torch.empty(rows, 0, dtype=torch.float64)
        self.each = torch.empty(rows, 0, columns, dtype=torch.float64)
        self.query(torch.zeros(rows, 1, task.size))

    @property
    def spent(self) -> int:
        """Queries made for each row."""
        return self.costs.shape[1]

    @property
    def remaining(self) -> int:
        """Queries left for each row."""
        return self.budget.queries - self.spent

    def query(self, phi: Tensor) -> Tensor:
        """Query phi [R, n, d] and return the costs [R, n]."""
        found = self.task.observe_each(phi.flatten(0, 1))
        each = found.view(*phi.shape[:2], found.shape[1])
        self.phi = torch.cat([self.phi, phi], dim=1)
        self.each = torch.cat([self.each, each], dim=1)
        costs = constrained_cost(each)
        self.costs = torch.cat([self.costs, costs], dim=1)
        return costs

    def confirm(self, phi: Tensor) -> str:
        """Query phi [R, d], and return why that failed; empty if it did not."""
        known = Counter(self.task.failures)
        self.query(phi[:, None])
        return next(iter(Counter(self.task.failures) - known), "")

    def best(self, queries: int | None = None) -> tuple[Tensor, Tensor]:
        """Return phi [R, d] and cost [R] of the best of the first queries."""
        cost, index = self.costs[:, :queries].min(1)
        return self.phi[torch.arange(self.rows), index], cost

    def result(self) -> FinetuneResult:
        """Return the best phi of every row, with checkpoints on the way."""
        marks = [mark for mark in CHECKPOINTS if mark < self.spent] + [self.spent]
        checkpoints = tuple(Checkpoint(0, mark, *self.best(mark)) for mark in marks)
        return FinetuneResult(self.best()[0], self.spent, 0, 0, checkpoints)

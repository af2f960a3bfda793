"""The contract every method works against: losses and metric queries, batched over phi.

A task holds the train split (for gradients) and the observe split (for metric queries).
It has no access to the test split; only whoever judges the method does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from metricopt.adapters.blocks import PhiBlocks, quarters
from metricopt.errors import (
    BudgetExceededError,
    DivergedError,
    MetricError,
    ShapeError,
)
from metricopt.metrics.constrained import Bounds
from metricopt.metrics.scale import Scale
from metricopt.process.seeding import Seeds
from metricopt.process.watch import Watch
from metricopt.tasks.observed_statistics import ObservedStatistics


class Meter:
    """The one place where metric queries are counted, and refused beyond a limit.

    Attributes:
        limit: greatest number of queries; None for no limit.
        made: queries by the split they were made on: `observe`, `train`.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.made: dict[str, int] = {}

    def __deepcopy__(self, memo: object) -> "Meter":
        """Return itself: a copy of what is metered is charged to the same meter."""
        return self

    @property
    def queries(self) -> int:
        """Metric queries made so far."""
        return sum(self.made.values())

    def state(self) -> dict[str, Any]:
        """Return the queries made so far, for checkpoints."""
        return {"made": self.made}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.made = dict(state["made"])

    def require(self, count: int) -> None:
        """Raise BudgetExceededError if so many more queries would exceed the limit."""
        if self.limit is not None and self.queries + count > self.limit:
            raise BudgetExceededError(
                f"{count} more metric queries after {self.queries} exceed the limit of "
                f"{self.limit}"
            )

    def charge(self, count: int, split: str = "observe") -> None:
        """Count queries made on a split; BudgetExceededError if they are too many."""
        self.require(count)
        self.made[split] = self.made.get(split, 0) + count


class Task(ABC):
    """A frozen network theta with adapter phi, a loss and a black-box metric.

    A method uses its public names only: losses and counted queries. They give no other
    access to the metric, the outputs or the labels.

    Attributes:
        size: number d of adapter parameters.
        meter: counts and limits metric queries.
        loss_evaluations: mini-batch losses evaluated so far, one per row.
        seeds: seeds of the task's own random choices; fixed ones if None is given.
        rates: learning rates found so far, see `metricopt.tasks.descent.loss_rate`.
        watch: says when a search has to end, and shows what is done; None for nobody.
        clusters: the cluster of every example of observe, [N], such as the patient of
            an image. Parts and samples of observe hold whole clusters. None if each
            example stands for itself.
    """

    watch: Watch | None = None
    clusters: Tensor | None = None

    def __init__(self, size: int, *, seeds: Seeds | None = None) -> None:
        self.size = size
        self.meter = Meter()
        self.loss_evaluations = 0
        self.seeds = seeds or Seeds("task")
        self.rates: dict[tuple[str, int, float], float] = {}

    @property
    def queries(self) -> int:
        """Metric queries made so far."""
        return self.meter.queries

    @property
    def scale(self) -> Scale:
        """The scale on which values of the metric are costs, after the first query."""
        return Scale()

    @property
    def unit(self) -> float:
        """What a cost of 1 is in the native units of the metric."""
        return self.scale.high - self.scale.low

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of what belongs together, such as what modulates one layer."""
        return quarters(self.size)

    @property
    def statistics(self) -> ObservedStatistics | None:
        """Statistics of outputs and labels on the observe split, free of queries.

        None where outputs and labels are of no kind that statistics are known for.
        """
        return None

    @property
    def compares(self) -> bool:
        """Whether examples are compared with each other; see `Statistics.compares`."""
        statistics = self.statistics
        return statistics is not None and statistics.compares

    @property
    def bounds(self) -> Bounds | None:
        """Bounds on other metrics, which every query observes; None without any."""
        return None

    @property
    def is_over(self) -> bool:
        """Whether a search has to end now, before its queries are spent."""
        return self.watch is not None and self.watch.is_over

    def is_late(self) -> bool:
        """Return whether what takes long between queries has to end where it is."""
        return self.watch is not None and self.watch.is_late

    def affordable(self, wanted: int) -> int:
        """Return how many of some queries there is still time for."""
        return wanted if self.watch is None else self.watch.affordable(wanted)

    def stage(self, what: str) -> None:
        """Say what a method does until its next query, to whoever watches."""
        if self.watch is not None:
            self.watch.stage(what)

    @property
    def portfolio(self) -> dict[str, "Task"]:
        """The same task with other losses, by their names; the meter is shared.

        What phi becomes under another loss costs no query, and may suit the metric
        better. Empty where no other loss is known for the outputs and labels.
        """
        return {}

    def losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of each row of phi on a mini-batch of its own.

        Args:
            phi: adapter parameters, shape [B, d].
            generator: source of the mini-batches.

        Returns:
            Losses, shape [B], differentiable in phi.

        Raises:
            ShapeError: if phi is not [B, d].
            DivergedError: if a loss is not finite.
        """
        self._check(phi)
        losses = self._losses(phi, generator)
        if not bool(torch.isfinite(losses).all()):
            bad = int((~torch.isfinite(losses)).nonzero()[0])
            raise DivergedError(
                f"the loss of row {bad} is {losses[bad].item()} at "
                f"|phi| = {phi[bad].detach().norm().item():.3g}"
            )
        self.loss_evaluations += len(phi)
        return losses

    def observe(self, phi: Tensor) -> Tensor:
        """Query the metric on the observe split, once per row of phi.

        Args:
            phi: adapter parameters, shape [B, d].

        Returns:
            Costs, shape [B], float64, lower is better, in [0, 1].

        Raises:
            ShapeError: if phi is not [B, d].
            MetricError: if the metric fails; the message names it and the value.
            BudgetExceededError: if the queries would exceed the limit of the meter.
        """
        return self._query(phi, self._observe, "observe")

    def observe_each(self, phi: Tensor) -> Tensor:
        """Query the objective and all bounded metrics together, once per row of phi.

        That is one query each, as `observe` makes, whose costs `constrained_cost` makes
        of what this returns.

        Returns:
            The objective's cost, then by how much each of the M bounds is exceeded,
            <= 0 where it is met, relative to the scale of its metric; shape [B, 1 + M].

        Raises:
            ShapeError, MetricError, BudgetExceededError: see `observe`.
        """
        if self.bounds is None:
            return self.observe(phi)[:, None]
        return self._query(phi, self._observe_each, "observe")

    def observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        """Query the metric on a fresh random part of the train split; see `observe`.

        The part is as large as the observe split and the same for all rows. Fresh
        examples cannot be over-fitted; the paper compares the two in Fig. S4.
        """
        return self._query(
            phi, lambda rows: self._observe_train(rows, generator), "train"
        )

    def observe_part(self, phi: Tensor, places: Tensor) -> Tensor:
        """Query the metric on the examples of observe at places [n]; see `observe`.

        Parts that are compared say whether a gain is more than chance.
        """
        return self._query(
            phi, lambda rows: self._observe_part(rows, places), "observe"
        )

    def observe_within(self, phi: Tensor, places: Tensor) -> Tensor:
        """Query each phi on the examples of observe at places [n], phi = 0 on others.

        For metrics that are undefined on a part alone; see `observe`.

        Raises:
            MetricError: also if the task has no such outputs.
        """
        return self._query(
            phi, lambda rows: self._observe_within(rows, places), "observe"
        )

    @property
    def failures(self) -> Sequence[str]:
        """Messages of the queries that failed and were forgiven."""
        return ()

    @property
    @abstractmethod
    def examples(self) -> int:
        """Number of examples N of the observe split."""

    def _query(
        self, phi: Tensor, query: Callable[[Tensor], Tensor], split: str
    ) -> Tensor:
        self._check(phi)
        self.meter.require(len(phi))
        with torch.no_grad():
            costs = query(phi.detach())
        self.meter.charge(len(phi), split)
        return costs

    def _check(self, phi: Tensor) -> None:
        if phi.ndim != 2 or phi.shape[1] != self.size:
            raise ShapeError(
                f"phi must have shape [B, {self.size}], got {tuple(phi.shape)}"
            )

    @abstractmethod
    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor: ...

    @abstractmethod
    def _observe(self, phi: Tensor) -> Tensor: ...

    def _observe_each(self, phi: Tensor) -> Tensor:
        return self._observe(phi)[:, None]

    @abstractmethod
    def _observe_part(self, phi: Tensor, places: Tensor) -> Tensor: ...

    def _observe_within(self, phi: Tensor, places: Tensor) -> Tensor:
        raise MetricError(
            "the task does not mix outputs of one phi with those of another"
        )

    @abstractmethod
    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor: ...

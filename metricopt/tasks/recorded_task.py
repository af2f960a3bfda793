"""A wrapper of a task that keeps every query, and knows the best."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.adapters.blocks import PhiBlocks
from metricopt.errors import MetricError
from metricopt.metrics.base import METRICS, Metric
from metricopt.metrics.constrained import (
    Bounds,
    constrained_cost,
    is_by_row,
    metrics_of,
)
from metricopt.metrics.scale import Scale
from metricopt.process.watch import Watch
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

OnQuery = Callable[[int], object]
"""Called with the number of observations just made."""


class RecordedTask(Task):
    """Another task, with every query on the whole observe split kept.

    It shares the meter, the seeds and the rates of the task it wraps, so a query
    through either counts for both.

    Args:
        inner: any task.
        rows: rows of phi queried at a time; None for all. With 1, a metric that fails
            at one phi loses none of the rows before it.
        on_query: called with the number of observations just made.
        watch: says when a search has to end, and shows what is done.

    Attributes:
        best: least cost observed and its phi [1, d]; None before the first query.
        measured: observations that succeeded, including those before a failed one,
            and failures on parts, after which a call goes on.
    """

    def __init__(
        self,
        inner: Task,
        *,
        rows: int | None = None,
        on_query: OnQuery | None = None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(inner.size, seeds=inner.seeds)
        self.meter, self.rates = inner.meter, inner.rates
        self.clusters = inner.clusters
        self.best: tuple[float, Tensor] | None = None
        self.measured = 0
        self._seen: list[tuple[Tensor, Tensor]] = []
        self._inner = inner
        self._rows = rows
        self._on_query, self.watch = on_query, watch

    @property
    def phi(self) -> Tensor:
        """All phi queried, in order, shape [n, d]."""
        return torch.cat([torch.empty(0, self.size), *(phi for phi, _ in self._seen)])

    @property
    def costs(self) -> Tensor:
        """Costs of all phi queried, in order, shape [n]."""
        return constrained_cost(self.each)

    @property
    def each(self) -> Tensor:
        """What `observe_each` says of all phi queried, in order, shape [n, 1 + M]."""
        columns = 1 if self.bounds is None else 1 + len(self.bounds.names)
        none = torch.empty(0, columns, dtype=torch.float64)
        return torch.cat([none, *(each for _, each in self._seen)])

    @property
    def bounds(self) -> Bounds | None:
        """Bounds of the task it wraps."""
        return self._inner.bounds

    @property
    def scale(self) -> Scale:
        """The scale of the task it wraps."""
        return self._inner.scale

    @property
    def blocks(self) -> PhiBlocks:
        """Blocks of the task it wraps."""
        return self._inner.blocks

    @property
    def statistics(self) -> ObservedStatistics | None:
        """Statistics of the task it wraps."""
        return self._inner.statistics

    @property
    def portfolio(self) -> dict[str, Task]:
        """Portfolio of the task it wraps; its tasks are for losses, not for queries."""
        return self._inner.portfolio

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the task it wraps."""
        return self._inner.failures

    def observe_untouched(self) -> float:
        """Query the untouched network, phi = 0, and return its cost; see `observe`."""
        return self.observe(torch.zeros(1, self.size)).item()

    def count(self, observations: int) -> None:
        """Count evaluations of the metric that were made outside the task."""
        self.meter.charge(observations)
        self._measured(observations)

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        return self._inner._losses(phi, generator)

    def _observe(self, phi: Tensor) -> Tensor:
        return constrained_cost(self._observe_each(phi))

    def _observe_each(self, phi: Tensor) -> Tensor:
        def recorded(part: Tensor) -> Tensor:
            each = self._inner._observe_each(part)
            self._record(part, each)
            return each

        return self._counted(phi, recorded)

    def _record(self, phi: Tensor, each: Tensor) -> None:
        """Keep some phi [b, d] with what was observed [b, 1 + M], and the best."""
        self._seen.append((phi.clone(), each))
        costs = constrained_cost(each)
        least = int(costs.argmin())
        if self.best is None or costs[least].item() < self.best[0]:
            self.best = costs[least].item(), phi[least : least + 1].clone()

    @property
    def examples(self) -> int:
        """Number of examples of the observe split."""
        return self._inner.examples

    def _observe_part(self, phi: Tensor, places: Tensor) -> Tensor:
        return self._of_parts(phi, lambda one: self._inner._observe_part(one, places))

    def _observe_within(self, phi: Tensor, places: Tensor) -> Tensor:
        return self._of_parts(phi, lambda one: self._inner._observe_within(one, places))

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        # Not compared with `best`: these costs are on other examples.
        state = generator.get_state()

        def query(part: Tensor) -> Tensor:
            generator.set_state(state)  # the same examples for all rows
            return self._inner._observe_train(part, generator)

        return self._counted(phi, query)

    def _of_parts(self, phi: Tensor, query: Callable[[Tensor], Tensor]) -> Tensor:
        """Return `_counted` costs; a failure, which ends no call, counts as well."""
        try:
            return self._counted(phi, query)
        except MetricError:
            self.measured += 1
            raise

    def _counted(self, phi: Tensor, query: Callable[[Tensor], Tensor]) -> Tensor:
        """Return costs of all rows, a few at a time; those before a failure count."""
        found = []
        for part in phi.split(self._rows or max(1, len(phi))):
            began = time.perf_counter()
            found.append(query(part))
            if self.watch is not None:
                self.watch.took((time.perf_counter() - began) / len(part))
            self._measured(len(part))
        return torch.cat(found)

    def _measured(self, observations: int) -> None:
        self.measured += observations
        if self._on_query is not None:
            self._on_query(observations)


def rows_together(metric: Metric) -> int | None:
    """Return how many rows of phi are queried at a time; None for all.

    A user's metric may fail at any phi; one row at a time loses no earlier row. It is
    no slower if the metric is called row by row in any case.
    """
    known = {METRICS.get(name) for name in METRICS}
    alone = (is_by_row(m) and type(m) not in known for m in metrics_of(metric))
    return 1 if any(alone) else None

"""A network task that loses nothing it measured."""

from collections.abc import Callable

import torch
from torch import Tensor

from metricopt.metrics import CallableMetric, check_metric, to_cost
from metricopt.network_task import NetworkTask


class RecordedTask(NetworkTask):
    """Keeps the best phi observed, and counts observations one by one.

    Attributes:
        best: least cost observed and its phi [1, d]; None before the first query.
        measured: observations that succeeded, those of a call that failed included.
        on_query: called with the number of observations just made.
    """

    best: tuple[float, Tensor] | None = None
    measured: int = 0
    on_query: Callable[[int], object] | None = None

    def observe_untouched(self) -> float:
        """Check the metric on the untouched network and return it, in native units.

        Raises:
            DataError: as `check_metric`.
            MetricError: as `check_metric`.
        """
        zero = torch.zeros(1, self.size)
        outputs = self.observed.outputs(zero)[0]
        value = check_metric(self.metric, outputs, self.observed.targets)
        cost = to_cost(self.metric, torch.tensor([value], dtype=torch.float64))
        self._record(zero, cost)
        self.queries += 1
        return value

    @property
    def device(self) -> torch.device:
        """Where the network and the examples are."""
        return self.observed.targets.device

    def _observe(self, phi: Tensor) -> Tensor:
        return torch.cat([self._record_part(part) for part in phi.split(self._rows)])

    @property
    def _rows(self) -> int:
        # A metric of the user's may fail at any phi: what was measured just before is
        # then not lost with it. It is called row by row in any case.
        return 1 if isinstance(self.metric, CallableMetric) else 2**31

    def _record_part(self, phi: Tensor) -> Tensor:
        costs = super()._observe(phi)
        self._record(phi, costs)
        return costs

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        # Not compared with `best`: the costs are those of other examples.
        costs = super()._observe_train(phi, generator)
        self._count(len(phi))
        return costs

    def _record(self, phi: Tensor, costs: Tensor) -> None:
        least = int(costs.argmin())
        if self.best is None or costs[least].item() < self.best[0]:
            self.best = costs[least].item(), phi[least : least + 1].clone()
        self._count(len(phi))

    def _count(self, observations: int) -> None:
        self.measured += observations
        if self.on_query is not None:
            self.on_query(observations)

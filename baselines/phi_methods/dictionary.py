"""A labelled ceiling: recognise the metric among those that the library knows.

Outputs and labels of the observe split tell what every known metric would have said of
a phi. The metric that agrees with the first three queries is the black box; it is then
optimised without further queries. Any named metric of class scores is recognised at
once, so this says what a name is worth, not what a method can do with a black box.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from baselines.phi_methods.class_rates import knows_decisions, statistics_of
from baselines.phi_methods.contract import RIVALS
from metricopt.errors import MetricOptError
from metricopt.methods.contract import Method, Preparation, Sees
from metricopt.methods.evolution import (
    draw_seeds,
    evolution_strategies,
    evolution_strategy,
    spend,
)
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.metrics.base import METRICS, Metric, to_cost
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

COMPARED = 3
"""Queries that a known metric has to agree with."""


@RIVALS.register("dictionary")
@dataclass(frozen=True)
class Dictionary(Method):
    """Compares, recognises, optimises with CMA-ES, and queries the result once.

    A metric that is not recognised is searched by CMA-ES with the rest of the budget.

    Attributes:
        left_out: names of registered metrics that are taken as unknown. Some agree by
            definition, such as `mcr`, `top-1` and `jaccard-legacy`.
        evaluations: evaluations of the recognised metric, free of queries.
        deviation: initial step size of CMA-ES, and of the random phi compared.
        tolerance: greatest difference in cost between metrics that agree.
    """

    sees: ClassVar[Sees] = "formula"
    left_out: tuple[str, ...] = ()
    evaluations: int = 1_000
    deviation: float = 0.5
    tolerance: float = 1e-6

    def suits(self, task: Task) -> bool:
        """Return whether the task has statistics of its outputs."""
        return knows_decisions(task)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Spend four queries on a metric that is recognised, else all of them."""
        archive, statistics = Archive(task, budget, rows), statistics_of(task)
        # The last query is that of the result.
        compared = min(COMPARED - 1, archive.remaining - 1)
        if compared > 0:
            random = torch.randn(rows, compared, task.size, generator=generator)
            archive.query(self.deviation * random)
        known = self._recognised(statistics, archive)
        seeds = draw_seeds(rows, generator)
        if known is None:
            spend(archive, evolution_strategies(task.size, self.deviation, seeds))
        elif archive.remaining:
            chosen = [
                self._optimised(known, statistics, task.size, seed) for seed in seeds
            ]
            archive.query(torch.stack(chosen)[:, None])
        return replace(archive.result(), notes={"recognised": float(known is not None)})

    def _recognised(
        self, statistics: ObservedStatistics, archive: Archive
    ) -> Metric | None:
        """Return the first known metric that agrees with every query, if one does."""
        outputs = statistics.outputs(archive.phi.flatten(0, 1)).cpu()
        costs = archive.costs.flatten()
        for name in METRICS:
            if name not in self.left_out:
                metric = METRICS.get(name)()
                if metric.reads != "scores":
                    continue  # outputs are scores of classes here
                try:
                    found = to_cost(metric, metric.values(outputs, statistics.targets))
                except MetricOptError:
                    continue  # of another number of classes
                if bool((found - costs).abs().max() <= self.tolerance):
                    return metric
        return None

    def _optimised(
        self, metric: Metric, statistics: ObservedStatistics, size: int, seed: int
    ) -> Tensor:
        """Return the best phi [d] that CMA-ES evaluates a known metric at."""
        search = evolution_strategy(size, self.deviation, seed)
        for _ in range(max(1, self.evaluations // search.popsize)):
            asked = search.ask()
            phi = torch.tensor(np.stack(asked), dtype=torch.float32)
            outputs = statistics.outputs(phi).cpu()
            values = metric.values(outputs, statistics.targets)
            search.tell(asked, to_cost(metric, values).tolist())
        return torch.tensor(search.best.x, dtype=torch.float32)

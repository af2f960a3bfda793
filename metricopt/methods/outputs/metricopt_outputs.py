"""MetricOpt on outputs: learn the metric from what it sees, then do without it.

Ours, not the paper's, whose value function is one of phi. A metric does not see phi; it
sees outputs and labels, whose statistics are known for every phi without a query. So:

1. Query phi = 0 and a few phi that move the statistics in different ways.
2. Fit the value function of statistics, descend it through the network from the best
   phi so far, within a region in which the statistics stay close, and query the phi it
   promises most for. Repeat.
3. Once predictions of the next query come true, the metric is identified. What is left
   needs no metric: cross-fitting says how far to go and what that gains on unseen
   examples, and one query confirms it. Without evidence of a gain, phi stays 0.

A metric that is no function of the statistics is noticed within a third of the budget;
the search then goes on as CMA-ES from the best phi, in directions the loss is sensitive
to, and returns the best it observed.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from metricopt.methods.archive import Archive
from metricopt.methods.budget import Budget
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.evolution import covariance_root, draw_seeds
from metricopt.methods.outputs.cross_fitting import CrossFitted, CrossFitting
from metricopt.methods.outputs.search import OutputsSearch, SearchSettings, directions
from metricopt.methods.result import Checkpoint, FinetuneResult
from metricopt.tasks.task import Task

GRADIENTS, ISOTROPIC = 64, 0.1
"""Of the covariance CMA-ES starts with; see `covariance_root`."""


@METHODS.register("metricopt-outputs")
@dataclass(frozen=True)
class MetricOptOutputs(Method):
    """A value function of the statistics of outputs, and descent on it.

    It sees outputs and labels of the observe split, as post-hoc shifts do.

    Attributes:
        search: how phi is searched for.
        cross_fitting: how the search ends where the metric is identified.
        patience: share of the budget after which the search goes on as CMA-ES where
            the statistics do not predict the metric.
    """

    sees: ClassVar[Sees] = "outputs and labels"
    search: SearchSettings = field(default_factory=SearchSettings)
    cross_fitting: CrossFitting = field(default_factory=CrossFitting)
    patience: float = 1 / 3

    def suits(self, task: Task) -> bool:
        """Return whether the task has statistics of its outputs."""
        return task.statistics is not None

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Spend the queries of the budget on every row, the last on what it chose."""
        archive = Archive(task, budget, rows)
        searches = self._searches(task, archive, generator)
        fewest = self.search.first_points + 3 * self.search.trusted
        patience = max(fewest, round(self.patience * budget.queries))
        while archive.remaining > 1:
            for search in searches:
                if archive.spent >= patience and search.is_hopeless:
                    search.hand_over()
            asked = [search.ask() for search in searches]
            costs = archive.query(torch.stack(asked)[:, None])
            for search, phi, cost in zip(searches, asked, costs, strict=True):
                search.learn(phi[None], cost)
        fitted = [self._cross_fitted(search, generator) for search in searches]
        return _confirmed(archive, searches, fitted)

    def _searches(
        self, task: Task, archive: Archive, generator: torch.Generator
    ) -> list[OutputsSearch]:
        statistics = task.statistics
        assert statistics is not None
        root = covariance_root(task, generator, GRADIENTS, ISOTROPIC)
        found = directions(statistics, task.size, generator)
        searches = [
            OutputsSearch(self.search, statistics, found, root, seed)
            for seed in draw_seeds(archive.rows, generator)
        ]
        for row, search in enumerate(searches):
            search.learn(archive.phi[row], archive.costs[row])
        return searches

    def _cross_fitted(
        self, search: OutputsSearch, generator: torch.Generator
    ) -> CrossFitted | None:
        """Return what cross-fitting finds, None where the metric is not identified."""
        if not search.identified:
            return None
        return search.cross_fit(self.cross_fitting, generator)


def _confirmed(
    archive: Archive,
    searches: list[OutputsSearch],
    fitted: list[CrossFitted | None],
) -> FinetuneResult:
    """Return what was fitted where the last query confirms it, phi = 0 where not."""
    best, cost = archive.best()
    proposed = [
        row if found is None else found.phi
        for row, found in zip(best, fitted, strict=True)
    ]
    if archive.remaining:
        archive.query(torch.stack(proposed)[:, None])
        cost = archive.costs[:, -1]
    chosen, costs = [], []
    untouched = archive.costs[:, 0]
    for row, found in enumerate(fitted):
        shown = found is None or found.is_shown
        kept = shown and bool(cost[row] < untouched[row])
        chosen.append(proposed[row] if kept else torch.zeros_like(proposed[row]))
        costs.append(cost[row] if kept else untouched[row])
    phi, result = torch.stack(chosen), archive.result()
    last = Checkpoint(0, archive.spent, phi, torch.stack(costs))
    return replace(
        result,
        phi=phi,
        checkpoints=(*result.checkpoints[:-1], last),
        notes=_notes(searches, fitted),
    )


def _notes(
    searches: list[OutputsSearch], fitted: list[CrossFitted | None]
) -> dict[str, float]:
    """Return what records say: shares and means over the rows."""
    errors = [abs(mean - cost) for search in searches for mean, cost in search.trials]
    notes = {"identified": sum(s.identified for s in searches) / len(searches)}
    if errors:
        notes["prediction_error"] = torch.tensor(errors).median().item()
    known = [found for found in fitted if found is not None]
    if known:
        notes["expected_gain"] = sum(found.gain for found in known) / len(known)
        notes["expected_gain_error"] = sum(f.error for f in known) / len(known)
    return notes

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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.evolution import (
    GRADIENTS,
    ISOTROPIC,
    covariance_root,
    draw_seeds,
)
from metricopt.methods.known import Known, KnownStatistics
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.on_outputs.conclusion import conclude, propose
from metricopt.on_outputs.coordinates import coordinates
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.folds import QUERIES, lacking
from metricopt.on_outputs.obvious import obvious
from metricopt.on_outputs.search import Candidates, OutputsSearch, SearchSettings
from metricopt.on_outputs.snapshots import PortfolioSettings, snapshots
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

ENOUGH = 0.02
"""Error of prediction, in spreads of the observed costs, at which a search ends that
has no settings of its own."""


@METHODS.register("metricopt-outputs")
@dataclass(frozen=True)
class MetricOptOutputs(Method):
    """A value function of the statistics of outputs, and descent on it.

    It sees outputs and labels of the observe split, as post-hoc shifts do.

    Attributes:
        search: how phi is searched for.
        portfolio: fine-tunings under other losses, whose snapshots are candidates.
        cross_fitting: how the search ends where the metric is identified.
        patience: share of the budget after which the search goes on as CMA-ES where
            the statistics do not predict the metric.
        left_out: groups of statistics it does without, with the names of their kinds,
            such as `decisions: sorted`; an ablation.
        known: what was learned of the metric on another network. The search predicts
            from its first query on, and forgets it all if three predictions in a row
            do not come true.
    """

    sees: ClassVar[Sees] = "outputs and labels"
    asks_for_evidence: ClassVar[bool] = True
    looks_at_clock: ClassVar[bool] = True
    search: SearchSettings = field(default_factory=SearchSettings)
    portfolio: PortfolioSettings = field(default_factory=PortfolioSettings)
    cross_fitting: CrossFitting = field(default_factory=CrossFitting)
    patience: float = 1 / 3
    left_out: tuple[str, ...] = ()
    known: KnownStatistics | None = None

    def asking(self, level: float) -> "MetricOptOutputs":
        """Return the method that wants a gain of so many standard errors."""
        return replace(self, cross_fitting=self.cross_fitting.asking(level))

    def knowing(self, known: Known, adapter: Mapping[str, str]) -> Method:
        """Return the method with statistics of another network; others raise."""
        if not isinstance(known, KnownStatistics):
            return super().knowing(known, adapter)
        return replace(self, known=known)

    def fitted(self, budget: Budget) -> "MetricOptOutputs":
        """Return the method that ends once further queries would teach little.

        It keeps those that a check takes, where the metric is not identified.
        """
        return replace(
            self,
            search=replace(self.search, enough=ENOUGH),
            cross_fitting=replace(self.cross_fitting, second=True),
        )

    def suits(self, task: Task) -> bool:
        """Return whether the task has statistics of its outputs.

        Raises:
            ConfigError: if what is known was learned of other statistics.
        """
        if task.statistics is None:
            return False
        self._statistics(task)
        return True

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Query until the metric is identified, or the budget is spent.

        The last query confirms what was chosen, the last ten check what was found
        where the metric could not be identified.
        """
        statistics = self._statistics(task)  # before a query: it may refuse
        archive = Archive(task, budget, rows)
        searches = self._searches(statistics, archive, generator)
        fewest = self.search.first_points + 3 * self.search.trusted
        patience = max(fewest, round(self.patience * budget.queries))
        root: Tensor | None = None
        stream = np.random.RandomState()
        kept = 1
        # What cannot be cross-fitted in the end needs no queries either.
        vain = any(
            search.along.are_none or lacking(search.statistics) for search in searches
        )
        while archive.remaining > kept and not vain:
            if self._is_over(searches, archive):
                break
            for search in searches:
                if archive.spent >= patience and search.is_hopeless:
                    if root is None:
                        root = covariance_root(task, generator, GRADIENTS, ISOTROPIC)
                    search.hand_over(root, stream)
                    kept = QUERIES + 1
            asked = [search.ask() for search in searches]
            archive.query(torch.stack(asked)[:, None])
            last = archive.each[:, -1:]
            for search, phi, each in zip(searches, asked, last, strict=True):
                search.learn(phi[None], each)
        found = self._concluded(searches, archive, generator)
        # What is known elsewhere is of one metric.
        learned = searches if task.bounds is None else []
        known = (replace(search.known, scale=task.scale) for search in learned)
        return replace(found, known=tuple(known))

    def _concluded(
        self,
        searches: list[OutputsSearch],
        archive: Archive,
        generator: torch.Generator,
    ) -> FinetuneResult:
        archive.task.stage("cross-fitting")
        how = self.cross_fitting
        proposals = [propose(each, how, generator, archive) for each in searches]
        return conclude(archive.task, archive, proposals, generator)

    def _is_over(self, searches: list[OutputsSearch], archive: Archive) -> bool:
        """Return whether the metric is known, time is up, or a check needs the rest.

        A small budget may yet be enough to identify what is predicted somehow.
        """
        if archive.task.is_over or all(search.settled for search in searches):
            return True
        if not self.cross_fitting.second or archive.remaining > QUERIES + 1:
            return False
        if archive.spent > 2 * QUERIES:
            return not all(search.identified for search in searches)
        judged = len(searches[0].trials) >= self.search.trusted
        return judged and any(search.is_hopeless for search in searches)

    def _searches(
        self,
        statistics: ObservedStatistics,
        archive: Archive,
        generator: torch.Generator,
    ) -> list[OutputsSearch]:
        rows = archive.rows
        archive.task.stage("fine-tuning under other losses")
        along = coordinates(statistics, generator)
        candidates = snapshots(archive.task, along, self.portfolio, generator, rows)
        first, seeds = obvious(statistics), draw_seeds(rows, generator)
        known = None if self.known is None else self.known.on(archive.task.scale)
        searches = [
            OutputsSearch(
                self.search, statistics, along, Candidates(first, own), seed, known
            )
            for own, seed in zip(candidates, seeds, strict=True)
        ]
        archive.task.stage("searching")
        for row, search in enumerate(searches):
            search.begin(archive.each[row])
        return searches

    def _statistics(self, task: Task) -> ObservedStatistics:
        """Return the statistics of a task without those that are left out.

        Raises:
            ConfigError: if there is no such group, or distances are measured in it, or
                what is known was learned of other statistics.
        """
        statistics = task.statistics
        assert statistics is not None
        if self.left_out:
            statistics = self._without(statistics)
        if self.known is not None:
            self.known.check(statistics.exact(torch.zeros(1, task.size)))
        return statistics

    def _without(self, statistics: ObservedStatistics) -> ObservedStatistics:
        untouched, kind = torch.zeros(1, statistics.size), statistics.kind
        groups = statistics.exact(untouched)
        needed = {kind.near, *(family.near for family in kind.families(groups))}
        known = sorted(groups.keys() - needed)
        if not set(self.left_out) <= set(known):
            raise ConfigError(
                f"left_out must name groups of {', '.join(known)}, got "
                f"{', '.join(self.left_out)}"
            )
        return statistics.of_kind(kind.without(self.left_out))

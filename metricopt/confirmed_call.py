"""The run of a call whose search sees a sample; all examples confirm its choice."""

from dataclasses import replace

import torch
from torch import Tensor

from metricopt.adapters.base import NetworkAdapter
from metricopt.call import FinetuneCall
from metricopt.finetuned import Finetuned, Spent
from metricopt.given import Given
from metricopt.journal.journal import Journal
from metricopt.methods.bounds import is_worse, reports
from metricopt.methods.result import Evidence
from metricopt.metrics.base import from_cost
from metricopt.metrics.constrained import metrics_of
from metricopt.options import FinetuneOptions
from metricopt.process.watch import Watch
from metricopt.reading.splits import doubts_of_decisions
from metricopt.tasks.clusters import NO_CLUSTERS
from metricopt.tasks.failed_queries import strict
from metricopt.tasks.recorded_task import RecordedTask

CONFIRMING = 2
"""Queries of all examples, at most: of the untouched network, and of phi."""


class ConfirmedCall(FinetuneCall):
    """The run of one call that searches a sample of `given.whole`, `given.observe`.

    A confirming query that fails has no value, so it is not forgiven: the untouched
    network would look worse than it is.
    """

    confirming = CONFIRMING

    def __init__(
        self,
        adapter: NetworkAdapter,
        given: Given,
        options: FinetuneOptions,
        journal: Journal | None = None,
        *,
        watch: Watch,
    ) -> None:
        super().__init__(adapter, given, options, journal, watch=watch)
        assert given.whole is not None
        every = replace(
            given, train=given.whole, observe=given.whole, clusters=NO_CLUSTERS
        )
        task = self._network_task(every, strict(self._forgiving))
        self._whole = RecordedTask(task, on_query=self._confirming)
        self._searched: Finetuned | None = None

    def run(self) -> Finetuned:
        """Return what the search found, or the untouched network if nothing is gained.

        Raises:
            DataError, MetricError: see `FinetuneCall.run`.
        """
        self._searched = found = super().run()
        self._watch.stage("confirming")
        first = proposed = self._whole.observe_each(torch.zeros(1, self.task.size))[0]
        if found.phi.any():
            # Asked again, a noisy metric says something else of the same outputs.
            proposed = self._whole.observe_each(found.phi[None])[0]
        found = self._confirmed(found, first, proposed)
        alike = doubts_of_decisions(found.confusion, found.phi, found.bounds)
        found = replace(found, warnings=(*found.warnings, *alike))
        self._watch.say(found.summary())
        return found

    def best(self) -> Finetuned | None:
        """Return what the search found, or the best result so far."""
        found = self._searched
        if found is None:
            return super().best()
        return replace(found, spent=self._spent(found.spent.gradient_steps))

    def _confirmed(
        self, found: Finetuned, first: Tensor, proposed: Tensor
    ) -> Finetuned:
        """Return what was found as all examples see it, [1 + M] before and after."""
        evidence, phi, after = found.evidence, found.phi, proposed
        worse = is_worse(first, proposed, judged=bool(evidence and evidence.met))
        kept = not worse and not torch.equal(first, proposed)
        chances = (evidence.met if kept else evidence.met_before) if evidence else ()
        if not kept:
            after = first
        is_known = found.phi.any()
        if is_known and not kept:
            phi, evidence = torch.zeros_like(phi), self._refuted(evidence)
        value = self._objective(proposed) if is_known else found.metric_proposed
        return replace(
            found,
            phi=phi,
            metric_before=self._objective(first),
            metric_after=self._objective(after),
            metric_proposed=value,
            evidence=evidence,
            bounds=reports(self.metric, first, after, chances),
            # What the search has turned down was not asked for here.
            is_worse=worse if is_known else found.turned_down,
            spent=self._spent(found.spent.gradient_steps),
            examples=self._whole.examples,
        )

    def _refuted(self, evidence: Evidence | None) -> Evidence | None:
        if evidence is None:
            return None
        reason = (
            f"{evidence.reason} On all {self._whole.examples:,} examples nothing is "
            "gained: outputs stay as they are."
        )
        return replace(evidence, reason=reason)

    def _confirming(self, count: int) -> None:
        objective, whole = metrics_of(self.metric)[0], self._whole
        values = torch.cat([self._values, from_cost(objective, whole.each[:, 0])])
        self._watch.queried(count, values, torch.cat([self.task.costs, whole.costs]))

    def _spent(self, steps: int) -> Spent:
        spent = super()._spent(steps)
        return replace(spent, queries=spent.queries + self._whole.measured)

    @property
    def _unshown(self) -> str:
        if self._searched is None:
            return super()._unshown
        return (
            f"phi was chosen on {len(self.observe):,} examples, and not confirmed on "
            f"all {self._whole.examples:,}"
        )

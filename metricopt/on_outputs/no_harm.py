"""No harm: any method, and evidence for what is returned.

What a method queried says what the metric is a function of. Where that is found out,
phi is not the method's: it is cross-fitted anew, free of queries, as `MetricOptOutputs`
ends. Where not, the proposal of the method is checked on parts of the observe split.
Without evidence of a gain, phi is 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.algorithm1.recipe import MetaTrained, Progress
from metricopt.errors import ConfigError
from metricopt.methods.attempts import Attempt
from metricopt.methods.contract import Method, Preparation, Sees
from metricopt.methods.known import Known
from metricopt.methods.result import Archive, Budget, Evidence, FinetuneResult
from metricopt.on_outputs.conclusion import Proposal, conclude, propose, unexplained
from metricopt.on_outputs.coordinates import coordinates
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.folds import QUERIES
from metricopt.on_outputs.search import Candidates, OutputsSearch, SearchSettings
from metricopt.tasks.recorded_task import RecordedTask
from metricopt.tasks.task import Task

LEARNED = 100
"""Most queries that the value function learns from."""
PREDICTED = 5
"""Queries that it predicts before it learns from them."""
RESERVED = 2 + QUERIES
"""Queries that the method cannot spend: phi = 0, the confirmation and the check."""


@dataclass(frozen=True)
class NoHarm(Method):
    """Another method, whose queries are learned from, or whose proposal is checked.

    Attributes:
        method: the other method.
        cross_fitting: how phi is cross-fitted where the metric is identified.
    """

    method: Method
    cross_fitting: CrossFitting = field(default_factory=CrossFitting)
    sees: ClassVar[Sees] = "outputs and labels"
    asks_for_evidence: ClassVar[bool] = True

    def suits(self, task: Task) -> bool:
        """Return whether the other method can work on a task."""
        return self.method.suits(task)

    def fitted(self, budget: Budget) -> "NoHarm":
        """Return the method with its open settings fitted to what is left for it."""
        return replace(self, method=self.method.fitted(_left(budget)))

    def asking(self, level: float) -> "NoHarm":
        """Return the method that wants a gain of so many standard errors."""
        return replace(self, cross_fitting=self.cross_fitting.asking(level))

    def knowing(self, known: Known, adapter: Mapping[str, str]) -> "NoHarm":
        """Return the same around the other method with what was learned elsewhere."""
        return replace(self, method=self.method.knowing(known, adapter))

    def preparation_key(self, budget: Budget) -> object | None:
        """Return the key of what the other method prepares."""
        return self.method.preparation_key(_left(budget))

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Make what the other method prepares."""
        return self.method.prepare(task, _left(budget), generator, progress=progress)

    def value_function(self, prepared: Preparation) -> MetaTrained | None:
        """Return the value function of the other method."""
        return self.method.value_function(prepared)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Run the other method, then hold what it proposes against phi = 0."""
        if prepared is None:
            prepared = self.prepare(task, budget, generator)
        left = _left(budget)
        witnesses = [RecordedTask(task) for _ in range(rows)]
        # One after another, so that it is known which row asked for what.
        results = [
            self.method.run(witness, left, generator, prepared=prepared)
            for witness in witnesses
        ]
        archive = Archive(task, Budget(RESERVED, 0), rows)
        proposals = [
            self._proposal(archive, row, witness, result.phi[0], generator)
            for row, (witness, result) in enumerate(
                zip(witnesses, results, strict=True)
            )
        ]
        concluded = conclude(task, archive, proposals, generator)
        return _joined(results, concluded, shared_queries=prepared.queries)

    def _proposal(
        self,
        archive: Archive,
        row: int,
        witness: RecordedTask,
        phi: Tensor,
        generator: torch.Generator,
    ) -> Proposal:
        """Return what is made of the phi [d] another method chose for a row."""
        if archive.task.statistics is None:
            reason = "The outputs have no statistics that are known here."
            return unexplained(phi, Evidence(reason))
        search = _watched(witness, archive, row, generator)
        return propose(search, self.cross_fitting, generator, archive, best=phi)


def _left(budget: Budget) -> Budget:
    """Return what the other method may spend, or raise ConfigError."""
    if budget.queries <= RESERVED:
        raise ConfigError(
            f"a check for harm takes up to {RESERVED} queries, so the budget must have "
            f"more than that, got {budget.queries}"
        )
    return replace(budget, queries=budget.queries - RESERVED)


def _watched(
    witness: RecordedTask, archive: Archive, row: int, generator: torch.Generator
) -> OutputsSearch:
    """Return a search that knows what another method has queried."""
    statistics = archive.task.statistics
    assert statistics is not None
    along = coordinates(statistics, generator)
    none = torch.empty(0, statistics.size)
    search = OutputsSearch(
        SearchSettings(), statistics, along, Candidates(none, none), seed=0
    )
    search.learn(archive.phi[row], archive.each[row])
    count = len(witness.phi)
    chosen = torch.linspace(0, count - 1, min(count, LEARNED + PREDICTED)).long()
    order = chosen[torch.randperm(len(chosen), generator=generator)]
    learned, predicted = order[:-PREDICTED], order[-PREDICTED:]
    if len(learned):
        search.learn(witness.phi[learned], witness.each[learned])
        for place in predicted[:, None]:
            search.watch(witness.phi[place], witness.each[place])
    return search


def _obvious(
    results: list[FinetuneResult], last: FinetuneResult
) -> tuple[tuple[Attempt, ...], ...]:
    """Return what each row tried that is obvious, in the end what was cross-fitted."""
    own = [each.obvious[0] if each.obvious else () for each in results]
    return tuple((*one, *two) for one, two in zip(own, last.obvious, strict=True))


def _joined(
    results: list[FinetuneResult], last: FinetuneResult, *, shared_queries: int
) -> FinetuneResult:
    """Return the results of rows that ran by themselves as one, with their conclusion.

    The shared queries were made once for all of them.
    """
    first = results[0]
    checkpoints = [
        replace(
            points[0],
            phi=torch.cat([each.phi for each in points]),
            cost=torch.cat([each.cost for each in points]),
        )
        for points in zip(*(each.checkpoints for each in results), strict=True)
    ]
    spent = first.queries + last.queries
    end = replace(last.checkpoints[-1], step=first.gradient_steps, queries=spent)
    notes = {
        name: sum(each.notes[name] for each in results) / len(results)
        for name in first.notes
    }
    return replace(
        first,
        phi=last.phi,
        queries=spent,
        shared_queries=shared_queries,
        checkpoints=(*checkpoints, end),
        notes=notes | last.notes,
        evidence=last.evidence,
        known=tuple(known for each in results for known in each.known),
        obvious=_obvious(results, last),
    )

"""A labelled ceiling: gradient descent on the formula of the metric itself.

The formula is applied to the confusion matrix of the observe split. Its smooth form is
differentiable in phi. No query is needed, but the formula must be known.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from baselines.phi_methods.class_rates import (
    confusion_rates,
    knows_decisions,
    statistics_of,
)
from baselines.phi_methods.contract import RIVALS
from metricopt.errors import ConfigError
from metricopt.methods.contract import Method, Preparation, Sees
from metricopt.methods.result import Budget, Checkpoint, FinetuneResult
from metricopt.metrics.base import METRICS, to_cost
from metricopt.metrics.confusion import CountMetric
from metricopt.metrics.counted import CostWeightedError
from metricopt.statistics.contract import Groups, anchored
from metricopt.tasks.descent import START_DEVIATION, starts
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

EVERY = 10
"""Steps between two exact confusion matrices; in between, its smooth changes count."""


@RIVALS.register("white-box")
@dataclass(frozen=True)
class WhiteBox(Method):
    """Descends the known formula from a random start near 0; queries nothing.

    The best phi by the exact formula is returned.

    Attributes:
        formula: name of a metric of the confusion matrix.
        costs: costs of every decision (column) for every label (row); where given, the
            formula is their mean.
        rates: rates of Adam, all of which are tried; they fall to 0 like a cosine.
        steps: steps of Adam. They follow the formula, not the loss, so they are not
            those of the budget.
        examples: number of examples of the observe split that a step sees.
    """

    sees: ClassVar[Sees] = "formula"
    formula: str = "mcr"
    costs: tuple[tuple[float, ...], ...] = ()
    rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    steps: int = 300
    examples: int = 1_000

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
        """Descend on every row, from a start of its own.

        Raises:
            ConfigError: if the formula is not one of a confusion matrix of these
                classes.
        """
        metric, statistics = self.metric(), statistics_of(task)
        chosen = []
        for start in starts(task.size, rows, START_DEVIATION, generator).split(1):
            found = [
                _descend(
                    _Formula(metric, statistics, generator, self.examples),
                    start,
                    rate=rate,
                    steps=self.steps,
                )
                for rate in self.rates
            ]
            chosen.append(min(found, key=lambda pair: pair[0])[1])
        phi = torch.cat(chosen)
        unknown = torch.full((rows,), torch.nan, dtype=torch.float64)
        return FinetuneResult(phi, 0, 0, 0, (Checkpoint(0, 0, phi, unknown),))

    def metric(self) -> CountMetric | CostWeightedError:
        """Return the metric whose formula is known.

        Raises:
            ConfigError: if it is not one of the confusion matrix.
        """
        if self.costs:
            return CostWeightedError(torch.tensor(self.costs, dtype=torch.float64))
        found = METRICS.get(self.formula)()
        if not isinstance(found, CountMetric):
            raise ConfigError(
                "the formula must be that of a metric of the confusion matrix, got "
                f"{self.formula!r}"
            )
        return found


@dataclass(frozen=True)
class _Formula:
    """A formula with the statistics it is applied to."""

    metric: CountMetric | CostWeightedError
    statistics: ObservedStatistics
    generator: torch.Generator
    examples: int

    def cost(self, groups: Groups) -> Tensor:
        """Return the cost of statistics of the whole split, shape [1]."""
        return formula_cost(self.metric, groups, self.statistics.targets)

    def near(self, anchor: Tensor, exact: Groups, phi: Tensor) -> Tensor:
        """Return the cost of phi by smooth changes since an anchor, shape [1]."""
        drawn = torch.randperm(len(self.statistics), generator=self.generator)
        drawn = drawn[: self.examples]
        with torch.no_grad():
            there = self.statistics.smooth(anchor, drawn)
        here = self.statistics.smooth(phi, drawn)
        return self.cost(anchored(here, there, exact))


def _descend(
    formula: _Formula, start: Tensor, *, rate: float, steps: int
) -> tuple[float, Tensor]:
    """Return the least exact cost on the way from phi [1, d], and phi there."""
    phi = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([phi], lr=rate)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
    passed: list[tuple[float, Tensor]] = []
    for step in range(steps + 1):
        if step % EVERY == 0 or step == steps:
            anchor = phi.detach().clone()
            exact = formula.statistics.exact(anchor)
            passed.append((formula.cost(exact).item(), anchor))
        if step < steps:
            optimizer.zero_grad()
            formula.near(anchor, exact, phi).sum().backward()
            optimizer.step()
            rates.step()
    return min(passed, key=lambda pair: pair[0])


def formula_cost(
    metric: CountMetric | CostWeightedError, groups: Groups, targets: Tensor
) -> Tensor:
    """Return the cost that a formula gives confusion statistics, shape [B].

    Exact statistics give the cost of the metric itself.

    Args:
        metric: whose formula is applied.
        groups: statistics of n examples, exact or smooth.
        targets: labels of these examples, shape [n].

    Raises:
        ConfigError: if a binary formula meets more than two classes, or costs are of
            another number of classes.
    """
    rates = confusion_rates(groups).double()
    classes = rates.shape[1]
    if isinstance(metric, CostWeightedError):
        fits = len(metric.matrix) == classes
    else:
        fits = classes == 2 or not metric.binary
    if not fits:
        raise ConfigError(
            f"the formula {metric.name!r} is not one of {classes} classes"
        )
    counts = torch.bincount(targets, minlength=classes).to(rates)
    return to_cost(metric, metric.of_matrices(counts[:, None] * rates))

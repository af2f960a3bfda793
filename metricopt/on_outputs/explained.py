"""What queries say of a metric: which statistics it is a function of, and which one."""

from dataclasses import dataclass

from torch import Tensor

from metricopt.on_outputs.statistics_value import StatisticsValueFunction
from metricopt.statistics.contract import Groups
from metricopt.tasks.observed_statistics import ObservedStatistics

EXPLAINING = 0.01
"""Kinds of statistics count that have this share of the posterior, or more."""


@dataclass(frozen=True)
class Explained:
    """What is known of a metric.

    Attributes:
        value: the value function.
        statistics: which it is a function of: no more kinds than are needed.
        groups: groups of all queries, [n, q] each.
    """

    value: StatisticsValueFunction
    statistics: ObservedStatistics
    groups: Groups

    def of_these(self, groups: Groups) -> Groups:
        """Return the groups of these statistics, of groups of more kinds."""
        return self.statistics.kind.of_these(groups)


def explain(statistics: ObservedStatistics, groups: Groups, costs: Tensor) -> Explained:
    """Fit a value function, and drop the kinds of statistics that explain nothing.

    Args:
        statistics: statistics of one kind or several.
        groups: groups of n queries, [n, q] each.
        costs: costs of the queries, shape [n].
    """
    kind = statistics.kind
    families = kind.families(groups)
    value = StatisticsValueFunction(groups, costs, families)
    # What all kinds explain together has no name, and comes last.
    shares = dict(zip(kind.names(), value.shares, strict=False))
    needed = [name for name, share in shares.items() if share > EXPLAINING]
    together = sum(shares.values()) < 1 - EXPLAINING
    if together or len(needed) == len(shares):
        return Explained(value, statistics, groups)
    fewer = kind.only(needed)
    known = fewer.of_these(groups)
    value = StatisticsValueFunction(known, costs, fewer.families(known))
    return Explained(value, statistics.of_kind(fewer), known)

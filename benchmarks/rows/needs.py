"""What rows need of a problem and a metric; each need says in words why not."""

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import Need
from benchmarks.runs.spec import Unit, metric_of
from metricopt.metrics.aucpr import AveragePrecision

SMALL_PHI = 32
"""Largest d of problems whose queries and trainings cost next to nothing."""


def two_classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that moves one threshold does not suit."""
    return "" if problem.classes == 2 else "needs two classes"


def several_classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that weighs classes one by one does not suit."""
    return "" if problem.classes > 2 else "needs more than two classes"


def classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that shifts scores of classes does not suit."""
    return "" if problem.classes else "needs outputs that score classes"


def decisions(problem: Problem, metric: Unit) -> str:
    """Say why a row that moves decisions between classes does not suit."""
    if isinstance(metric_of(metric), AveragePrecision):
        return "moves all scores of a class, which leaves rankings as they are"
    return ""


def only(*metrics: str) -> Need:
    """Return the need of one of some metrics, by name."""

    def need(problem: Problem, metric: Unit) -> str:
        if metric.label in metrics:
            return ""
        return f"is defined for {', '.join(metrics)} alone"

    return need


def small_phi(why: str) -> Need:
    """Return the need of an adapter with few parameters, and why in words."""

    def need(problem: Problem, metric: Unit) -> str:
        return "" if problem.phi_size <= SMALL_PHI else why

    return need


def large_phi(why: str) -> Need:
    """Return the need of an adapter with many parameters, and why in words."""

    def need(problem: Problem, metric: Unit) -> str:
        return "" if problem.phi_size > SMALL_PHI else why

    return need


def queries(least: int) -> Need:
    """Return the need of so many queries of a search."""

    def need(problem: Problem, metric: Unit) -> str:
        if least <= problem.size.queries:
            return ""
        return f"makes {least:,} queries, more than searches make at this tier"

    return need

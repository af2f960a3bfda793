"""Columns of tables: a problem with a metric, and what it is called."""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.runs.spec import Unit

NATURAL = (Block("natural", "natural sampling"),)
"""The one block of tables on images."""
LABELS = {"mcr": "MCR", "jaccard": "JAC", "f1": "F", "g-mean": "G-mean"}


def column_of(problem: Problem, metric: Unit, label: str = "", **more: Any) -> Column:
    """Return the column of a problem and a metric.

    Args:
        problem: the problem.
        metric: the metric that is shown.
        label: name as printed; empty for those of problem and metric.
        **more: further fields of `Column`.
    """
    known = LABELS.get(metric.label, metric.label)
    return Column(
        f"{problem.name}/{metric.label}",
        label or f"{problem.name} {known}",
        metric,
        test_per_train=problem.test_per_train,
        **more,
    )

"""The binary problems of the UCI protocol, by name, and their columns in tables."""

from typing import Any

from benchmarks.layout import Column
from benchmarks.uci import Problem

A9A = Problem("a9a", "a9a", (1,))
COVTYPE = Problem("covtype", "covtype", (1,), epochs=12)
RARE = Problem("covtype-rare", "covtype", (3, 4, 5), epochs=12)
DIGIT = Problem("digit-8", "digits", (8,), epochs=30)
CANCER = Problem("cancer", "breast_cancer", (0,), epochs=30)

LABELS = {"mcr": "MCR", "jaccard": "JAC", "f1": "F", "g-mean": "G-mean"}
POSITIVES = {
    A9A: "income above 50K is positive",
    COVTYPE: "class 2 against the rest",
    RARE: "classes 4 to 6 against the rest",
    DIGIT: "8 against the rest",
    CANCER: "malignant is positive",
}
"""What counts as positive."""


def convention(*problems: Problem) -> str:
    """Return what counts as positive in the problems of a table, and from where on."""
    texts = (f"{problem.name}: {POSITIVES[problem]}." for problem in problems)
    return " ".join((*texts, "Threshold 0.5."))


def metric_column(problem: Problem, metric: str, **more: Any) -> Column:
    """Return the column of a problem and a metric, with further fields of `Column`."""
    return Column(
        f"{problem.name}/{metric}",
        f"{problem.name} {LABELS[metric]}",
        metric,
        higher_is_better=metric != "mcr",
        **more,
    )

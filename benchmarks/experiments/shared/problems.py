"""The problems of the experiments, by name, and their columns in tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from benchmarks.data.registry import resolve_variant
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.tabular.settings import BinaryProblem
from benchmarks.report.columns import Column
from benchmarks.runs.spec import Unit

P = TypeVar("P", BinaryProblem, ImageProblem)

UNRESOLVED = ""
"""Variant of a data set before it is known which one is here."""


@dataclass(frozen=True)
class NamedProblem(Generic[P]):
    """A problem as columns name it.

    Attributes:
        name: as in column names.
        problem: the data; its variant is unresolved.
    """

    name: str
    problem: P

    def here(self, offline: bool | None) -> P:
        """Return the problem with the variant of its data set that is used here.

        Args:
            offline: see `benchmarks.data.registry.resolve_variant`.
        """
        variant = resolve_variant(self.problem.dataset, offline=offline)
        return replace(self.problem, variant=variant)


def _binary(name: str, dataset: str, *positive: int) -> NamedProblem[BinaryProblem]:
    return NamedProblem(name, BinaryProblem(dataset, UNRESOLVED, positive))


def image_problem(
    name: str, dataset: str, *, imbalance: int = 1, label_noise: float = 0.0
) -> NamedProblem[ImageProblem]:
    """Return an image problem; see `ImageProblem` for imbalance and label noise."""
    return NamedProblem(name, ImageProblem(dataset, UNRESOLVED, imbalance, label_noise))


A9A = _binary("a9a", "a9a", 1)
COVTYPE = _binary("covtype", "covtype", 1)
RARE = _binary("covtype-rare", "covtype", 3, 4, 5)
DIGIT = _binary("digit-8", "digits", 8)
CANCER = _binary("cancer", "breast_cancer", 0)

CIFAR10 = image_problem("cifar10", "cifar10")
CIFAR100 = image_problem("cifar100", "cifar100")
DIGITS = image_problem("digits", "digits")

LABELS = {"mcr": "MCR", "jaccard": "JAC", "f1": "F", "g-mean": "G-mean"}
POSITIVES = {
    "a9a": "income above 50K is positive",
    "covtype": "class 2 against the rest",
    "covtype-rare": "classes 4 to 6 against the rest",
    "digit-8": "8 against the rest",
    "cancer": "malignant is positive",
}
"""What counts as positive, by name of the problem."""


def convention(problems: Sequence[NamedProblem[BinaryProblem]]) -> str:
    """Return what counts as positive in the problems of a table, and at which score."""
    texts = (f"{problem.name}: {POSITIVES[problem.name]}." for problem in problems)
    return " ".join((*texts, "Threshold 0.5."))


def metric_column(
    problem: NamedProblem[BinaryProblem], metric: str, **more: Any
) -> Column:
    """Return the column of a problem and a metric, with further fields of `Column`."""
    return Column(
        f"{problem.name}/{metric}",
        f"{problem.name} {LABELS[metric]}",
        Unit(metric),
        test_per_train=problem.problem.test_per_train,
        **more,
    )

"""Tables with fitted classifiers, and the sizes of their tiers."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from benchmarks.problems.fitted.estimators import Estimator
from benchmarks.problems.fitted.pipeline import OBSERVED, FittedSettings
from benchmarks.problems.fitted.table import TableData
from benchmarks.problems.problem import UNRESOLVED, DataProblem, Size
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Unit


@dataclass(frozen=True)
class FittedSize(Size):
    """How often rows are run at a tier; queries are those of a search by CMA-ES."""

    replicates: int = 5
    queries: int = 150
    metricopt_queries: int = 150

    def recipe(self, method: str) -> dict[str, Any]:
        """Return no changes: value functions of phi are not learned here."""
        return {}


SIZES = {
    "paper": FittedSize(replicates=10),
    "local": FittedSize(),
    "smoke": FittedSize(replicates=2, queries=20, metricopt_queries=20),
}


@dataclass(frozen=True, kw_only=True)
class FittedTable(DataProblem):
    """A table with a fitted classifier.

    Attributes:
        data: what is predicted.
        label: as printed.
        classes: number of classes.
        estimator: the classifier.
        observed: most examples of the observe split.
        bound: of runs under a bound: least precision of two classes, least recall of
            several, greatest gap between groups.
    """

    data: TableData
    label: str = field(default="", compare=False)
    size: Size = SIZES["local"]
    deviation: float | None = None
    reach: float = 5.0
    classes: int = 2
    estimator: Estimator = "logistic"
    observed: int = OBSERVED
    bound: float = 0.0

    @property
    def phi_size(self) -> int:
        """Number of offsets."""
        return 1 if self.classes == 2 else self.classes

    def at(self, tier: str, **changes: Any) -> Self:
        """Return the problem at a tier, with other fields changed."""
        return replace(self, size=SIZES[tier], **changes)

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it; its adapter is offsets, asked or not."""
        settings = FittedSettings(self.data, self.estimator, self.observed)
        return Unit("fitted", encode(settings))


def _table(
    name: str, label: str, dataset: str, bound: float, **more: Any
) -> FittedTable:
    classes = more.pop("classes", 2)
    data = TableData(dataset, UNRESOLVED, **more)
    return FittedTable(name=name, label=label, data=data, classes=classes, bound=bound)


INCOME = _table("income", "A9A, income", "a9a", 0.75)
WORK = _table(
    "work", "A9A, class of work", "a9a", 0.15, predicted="workclass", classes=6
)
OCCUPATION = _table(
    "occupation", "A9A, occupation", "a9a", 0.1, predicted="occupation", classes=13
)
COVER = _table("cover", "CoverType", "covtype", 0.5, classes=7)
PINE = _table("pine", "CoverType, class 2", "covtype", 0.85, positive=(1,))
RARE = _table("rare", "CoverType, classes 4 to 6", "covtype", 0.6, positive=(3, 4, 5))
DIGITS = _table("digits", "digits", "digits", 0.9, classes=10)
EIGHT = _table("eight", "digits, 8 or not", "digits", 0.9, positive=(8,))
CANCER = _table(
    "cancer", "breast cancer, malignant", "breast_cancer", 0.95, positive=(0,)
)
TABLES = (INCOME, WORK, OCCUPATION, COVER, PINE, RARE, DIGITS, EIGHT, CANCER)

BY_SEX = replace(
    INCOME,
    name="income-by-sex",
    label="A9A, income by sex",
    data=replace(INCOME.data, group="sex"),
    bound=0.05,
)

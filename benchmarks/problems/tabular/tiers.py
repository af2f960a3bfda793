"""Binary problems on tables, and the sizes of their tiers.

70/10/20 random splits, an MLP 100-30-10-1 trained with cross-entropy, d = 16 dynamic
input biases, T = 50 steps, K = 3 (5 % of T, rounded up) observations per trajectory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from benchmarks.problems.problem import LITERAL, UNRESOLVED, DataProblem, Size
from benchmarks.problems.tabular.pipeline import (
    BiasSettings,
    BinaryProblem,
    MLPBackbone,
    TabularSettings,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Unit

REVISION = 2
"""Raised when code changes numbers, so that no old record is taken for a new one."""

STEPS = 50
QUERIES = 5_000
EPOCHS = {"a9a": 8, "covtype": 12, "digits": 30, "breast_cancer": 30}
"""Length of pre-training by data set, at tiers `local` and `smoke`."""

Sampling = Literal["balanced", "natural"]


@dataclass(frozen=True)
class TabularSize(Size):
    """How large a tier is.

    Attributes:
        literal_tasks: trajectories of meta-training by the literal Algorithm 1.
        queries: metric queries that a search may make.
        metricopt_queries: metric queries that MetricOpt may make.
        epochs_factor: multiplies the epochs of every problem.
        surrogate_epochs: epochs of the learned surrogate loss, in batches of 100.
        batch_size: examples in one mini-batch of pre-training.
    """

    replicates: int = 5
    steps: int = STEPS
    tasks: int = 1_200
    literal_tasks: int = 600
    queries: int = QUERIES
    metricopt_queries: int = QUERIES
    optimizer_iterations: int = 400
    epochs_factor: float = 1.0
    surrogate_epochs: int = 3
    batch_size: int = 256

    def recipe(self, method: str) -> dict[str, Any]:
        """Return how a form of MetricOpt, by its name, learns a value function."""
        return {"tasks": self.literal_tasks if method == LITERAL else self.tasks}


SIZES = {
    "paper": TabularSize(
        replicates=10,
        search_tests=10,
        tasks=1_600,
        literal_tasks=1_600,
        optimizer_iterations=5_000,
        epochs_factor=4.0,
        surrogate_epochs=9,
    ),
    "local": TabularSize(),
    "smoke": TabularSize(
        replicates=2,
        meta_tests=2,
        tasks=48,
        literal_tasks=32,
        optimizer_iterations=2,
        queries=60,
        surrogate_epochs=2,
        batch_size=64,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Binary(DataProblem):
    """A data set with some of its classes against the rest.

    Attributes:
        data: the examples.
        positives: what counts as positive, in words.
        tier: decides the size of pre-training.
        sampling: class shares of mini-batches.
        epochs: length of pre-training, before the tier's factor; None for the usual
            length of the data set.
        offsets: whether the adapter of every row has output offsets.
    """

    data: BinaryProblem
    positives: str = field(default="", compare=False)
    size: Size = SIZES["local"]
    deviation: float | None = None
    tier: str = "local"
    sampling: Sampling = "balanced"
    epochs: int | None = None
    offsets: bool = False
    classes = 2
    phi_size = BiasSettings.size

    def at(self, tier: str, **changes: Any) -> Self:
        """Return the problem at a tier, with other fields changed."""
        return replace(self, **{"tier": tier, "size": SIZES[tier], **changes})

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it."""
        trained = SIZES[self.tier]
        epochs = self.epochs or EPOCHS[self.data.dataset]
        length = max(1, round(epochs * trained.epochs_factor))
        settings = TabularSettings(
            self.data,
            self.sampling,
            MLPBackbone(length, trained.batch_size),
            REVISION,
            BiasSettings(offsets=offsets or self.offsets),
        )
        return Unit("tabular", encode(settings))


def _binary(name: str, dataset: str, positive: tuple[int, ...], words: str) -> Binary:
    data = BinaryProblem(dataset, UNRESOLVED, positive)
    return Binary(name=name, data=data, positives=words)


A9A = _binary("a9a", "a9a", (1,), "income above 50K is positive")
COVTYPE = _binary("covtype", "covtype", (1,), "class 2 against the rest")
RARE = _binary("covtype-rare", "covtype", (3, 4, 5), "classes 4 to 6 against the rest")
DIGIT = _binary("digit-8", "digits", (8,), "8 against the rest")
CANCER = _binary("cancer", "breast_cancer", (0,), "malignant is positive")


def convention(problems: Sequence[Binary]) -> str:
    """Return what counts as positive in the problems of a table, and at which score."""
    texts = (f"{problem.name}: {problem.positives}." for problem in problems)
    return " ".join((*dict.fromkeys(texts), "Threshold 0.5."))

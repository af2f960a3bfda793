"""The problem at a tier, which rows are run on: how often, how long, on what."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from benchmarks.data.contract import DATASETS
from benchmarks.data.registry import find_any, resolve_variant
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.spec import Unit

LITERAL = "metricopt-literal"
LARGE_PHI_RECIPE = {"replay": 8, "inner_steps": 10, "step_share": 0.1}
"""Changes to the recipe for d = 128, where a trajectory covers little of the phi space.

Every update sees earlier tasks again and is fitted for longer. On-policy steps are
shorter: there are more of them, and in so many dimensions the random start is already
long. Chosen for worst-class error on observe only: one half queried, the other judged.
"""
STEP_QUERIES = 20
"""Queries of a fine-tuning by which MetricOpt chooses the length of its steps."""
STEP_CANDIDATES = [0.05, 0.1, 0.2, 0.4, 0.8]
"""Candidate lengths of the first step, in spreads of phi, around observe's choice."""
DEVIATION = 0.1
"""Standard deviation of the first samples of a search where d exceeds 100."""
SMALL_PHI = 32
"""Largest d of a problem that is small."""
UNRESOLVED = ""
"""Variant of a data set before it is known which one is here."""


@dataclass(frozen=True)
class Size(ABC):
    """How often and how long the runs of a tier are.

    Attributes:
        replicates: repetitions, each with a split, network, adapter and batches of its
            own.
        few_replicates: replicates of secondary rows, at most; None for all.
        meta_tests: fine-tuning runs per replicate.
        search_tests: searches by queries per replicate.
        seeds: searches of MetricOpt on outputs per replicate.
        value_functions: value functions that MetricOpt trains on one network, each with
            its meta-tests.
        steps: gradient steps of fine-tuning, T.
        tasks: trajectories of meta-training.
        optimizer_iterations: iterations in which an optimizer learns from the loss.
    """

    replicates: int = 1
    few_replicates: int | None = None
    meta_tests: int = 10
    search_tests: int = 1
    seeds: int = 1
    value_functions: int = 1
    steps: int = 100
    tasks: int = 480
    optimizer_iterations: int = 60

    @property
    @abstractmethod
    def queries(self) -> int:
        """Metric queries that a search may make."""

    @property
    @abstractmethod
    def metricopt_queries(self) -> int:
        """Metric queries that MetricOpt may make, meta-training included."""

    @property
    def oracle(self) -> int:
        """Queries of an oracle: as many as 50 dense fine-tunings, or two searches."""
        return max(50 * self.steps, 2 * self.queries)

    @abstractmethod
    def recipe(self, method: str) -> dict[str, Any]:
        """Return how a form of MetricOpt, by its name, learns a value function."""

    def step_lengths(self, method: str) -> dict[str, Any]:
        """Return the setting of a form of MetricOpt that says which steps it tries."""
        return {}


@dataclass(frozen=True)
class FinetuningSize(Size):
    """How long large networks are fine-tuned at a tier, and with how many queries.

    Attributes:
        observations: metric queries on a trajectory, K.
        batch_size: examples in one mini-batch of fine-tuning.
        search_queries: queries of a search; None for as many as MetricOpt makes.
    """

    search_tests: int = 2
    seeds: int = 5
    value_functions: int = 3
    observations: int = 5
    batch_size: int = 128
    search_queries: int | None = None

    @property
    def queries(self) -> int:
        """Metric queries that a search may make."""
        return self.search_queries or self.metricopt_queries

    @property
    def metricopt_queries(self) -> int:
        """Queries of meta-training, and those by which MetricOpt chooses its step."""
        return self.tasks * self.observations + STEP_QUERIES

    def recipe(self, method: str) -> dict[str, Any]:
        """Return how a form of MetricOpt, by its name, learns a value function."""
        rollout = {"steps": self.steps, "observations": self.observations}
        found = {"tasks": self.tasks, "rollout": rollout}
        return found if method == LITERAL else found | LARGE_PHI_RECIPE

    def step_lengths(self, method: str) -> dict[str, Any]:
        """Return the setting of a form of MetricOpt that says which steps it tries."""
        return {} if method == LITERAL else {"steps": STEP_CANDIDATES}


PAPER = {
    **{"steps": 200, "observations": 10, "tasks": 1_000},
    **{"optimizer_iterations": 5_000},
}
"""Fine-tuning at tier paper, of all but the largest networks."""
SMOKE = {
    **{"meta_tests": 2, "search_tests": 1, "seeds": 1},
    **{"steps": 10, "observations": 2, "optimizer_iterations": 2},
}
"""Fine-tuning at tier smoke."""


@dataclass(frozen=True, kw_only=True)
class Problem(ABC):
    """One problem at a tier, as tables and rows ask for it.

    Attributes:
        name: short name in the names of columns.
        size: how often, how long and with how many queries rows are run.
        deviation: standard deviation of the first samples of a search; None for the
            default of each search.
        reach: largest offset of a class that the search by coordinates tries.
        classes: number of classes that outputs score; 0 for embeddings and regions.
        has_offsets: whether an adapter can have an offset for every output.
        is_pictured: whether a run can keep a picture of what it changed.
        phi_size: number of parameters d of the adapter, without offsets: in FiLM of the
            direct form a scale and a shift for each of 64 channels.
    """

    name: str
    size: Size
    deviation: float | None = None
    reach: float = 1.0
    classes: ClassVar[int] = 0
    has_offsets: ClassVar[bool] = True
    is_pictured: ClassVar[bool] = False
    phi_size: ClassVar[int] = 128

    @property
    def is_small(self) -> bool:
        """Whether d is so small that queries and trainings cost next to nothing."""
        return self.phi_size <= SMALL_PHI

    @property
    def search_settings(self) -> dict[str, float]:
        """Settings of every search by queries here."""
        return {} if self.deviation is None else {"deviation": self.deviation}

    @property
    def test_per_train(self) -> float:
        """Test examples per training example in random splits; 0 for a shared test."""
        return 0.0

    def here(self, offline: bool | None) -> Self:
        """Return the problem with the data that is here, downloaded if it may be.

        Args:
            offline: see `benchmarks.data.registry.resolve_variant`.
        """
        return self

    @abstractmethod
    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it, with output offsets if they are wanted."""


@dataclass(frozen=True, kw_only=True)
class DataProblem(Problem):
    """A problem on a data set.

    Attributes:
        data: the examples; names the data set.
    """

    data: Any
    deviation: float | None = DEVIATION

    @property
    def test_per_train(self) -> float:
        """Test examples per training example in random splits; 0 for a shared test."""
        return getattr(self.data, "test_per_train", 0.0)

    def here(self, offline: bool | None) -> Self:
        """Return the problem with the data that is here.

        Data and base weights are downloaded if they may be.
        """
        name = self.data.dataset
        if name in DATASETS and self.data.variant == UNRESOLVED:
            variant = resolve_variant(name, offline=offline)
            return replace(self, data=replace(self.data, variant=variant))
        if offline is False:
            find_any(name).load()
            make_pipeline(self.pipeline(), 0).theta_spec.fetch_base()
        return self

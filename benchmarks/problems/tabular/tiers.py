"""The UCI protocol, shared by the experiments on tabular data.

70/10/20 random splits, an MLP 100-30-10-1 trained with cross-entropy, d = 16 dynamic
input biases, T = 50 steps, K = 3 (5 % of T, rounded up) observations per trajectory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.experiments.shared.arms import Size
from benchmarks.experiments.shared.plans import Part, Plans, on_pipeline
from benchmarks.experiments.shared.problems import NamedProblem
from benchmarks.problems.tabular.settings import (
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
QUERY_BUDGETS = (10, 20, 50, 150, 500, 1_500, 5_000)
METRICOPT_BUDGETS = (50, 150, 500, 1_500)
EPOCHS = {"a9a": 8, "covtype": 12, "digits": 30, "breast_cancer": 30}
"""Length of pre-training by data set, at tiers `local` and `smoke`."""

Sampling = Literal["balanced", "natural"]
ProblemMetrics = tuple[NamedProblem[BinaryProblem], tuple[str, ...]]
"""A problem with the metrics it has columns for."""


@dataclass(frozen=True)
class TabularSize(Size):
    """How large a tier is.

    Attributes:
        epochs_factor: multiplies the epochs of every problem.
        tasks: trajectories of meta-training.
        literal_tasks: the same for the literal row.
        queries: budget of searches, class-balanced sampling, columns of the paper.
        natural_queries: budget of searches under natural sampling.
        own_queries: budget of searches in columns that are not the paper's.
        surrogate_epochs: epochs of the learned surrogate loss, batches of 100.
        batch_size: of pre-training.
    """

    replicates: int = 5
    epochs_factor: float = 1.0
    tasks: int = 1_200
    literal_tasks: int = 600
    queries: int = QUERIES
    natural_queries: int = 500
    own_queries: int = 1_500
    surrogate_epochs: int = 3
    batch_size: int = 256


SIZES = {
    "paper": TabularSize(
        replicates=10,
        search_tests=10,
        epochs_factor=4.0,
        tasks=1_600,
        literal_tasks=1_600,
        natural_queries=QUERIES,
        own_queries=QUERIES,
        surrogate_epochs=9,
    ),
    "local": TabularSize(),
    "smoke": TabularSize(
        replicates=2,
        meta_tests=2,
        tasks=48,
        literal_tasks=32,
        queries=60,
        natural_queries=60,
        own_queries=60,
        surrogate_epochs=2,
        batch_size=64,
    ),
}


def tabular_pipeline(
    tier: str,
    problem: BinaryProblem,
    sampling: Sampling,
    *,
    epochs: int | None = None,
    offsets: bool = False,
) -> Unit:
    """Return the pipeline of a problem.

    Args:
        tier: decides the size of pre-training.
        problem: the data.
        sampling: of mini-batches.
        epochs: of pre-training, before the tier's factor; None for those of the data
            set.
        offsets: whether its adapter has output offsets.
    """
    size = SIZES[tier]
    length = (epochs or EPOCHS[problem.dataset]) * size.epochs_factor
    backbone = MLPBackbone(max(1, round(length)), size.batch_size)
    adapter = BiasSettings(offsets=offsets)
    settings = TabularSettings(problem, sampling, backbone, REVISION, adapter)
    return Unit("tabular", encode(settings))


def tabular_parts(
    tier: str,
    problems: Sequence[ProblemMetrics],
    plans: Callable[[str, str, str], Plans],
    *,
    offline: bool | None,
    blocks: Sequence[Sampling] = ("balanced",),
    epochs: Mapping[str, int] = EPOCHS,
) -> list[Part]:
    """Return the parts of a table: a column per problem and metric in every block.

    Args:
        tier: decides the size of pre-training.
        problems: with the metrics of their columns.
        plans: how rows are filled, given the names of block, problem and metric.
        offline: see `benchmarks.data.registry.resolve_variant`.
        blocks: names of the blocks, which are the samplings.
        epochs: of pre-training by data set, before the tier's factor.
    """
    found = []
    for problem, metrics in problems:
        data = problem.here(offline)
        for block in blocks:
            length = epochs[data.dataset]
            plain, beside = (
                tabular_pipeline(tier, data, block, epochs=length, offsets=offsets)
                for offsets in (False, True)
            )
            for metric in metrics:
                found_plans = plans(block, problem.name, metric)
                rows = on_pipeline(plain, found_plans, with_offsets=beside)
                column = f"{problem.name}/{metric}"
                found.append(Part(block, column, metric, STEPS, rows))
    return found

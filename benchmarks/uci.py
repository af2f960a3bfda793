"""The UCI protocol, shared by the experiments on tabular data.

70/10/20 random splits, an MLP 100-30-10-1 trained with cross-entropy, d = 16 dynamic
input biases, T = 50 steps, K = 3 (5 % of T, rounded up) observations per trajectory.
"""

from dataclasses import dataclass
from typing import Any

from benchmarks.protocol import Arm, Place, resolve
from benchmarks.records import RunSpec

REVISION = 1
"""Raised when code changes numbers, so that no old record is taken for a new one."""

STEPS = 50
QUERIES = 5_000
QUERY_BUDGETS = (50, 150, 500, 1_500, 5_000)
METRICOPT_BUDGETS = (50, 150, 500, 1_500)


@dataclass(frozen=True)
class Problem:
    """A binary problem made of a data set.

    Attributes:
        name: as in column names.
        dataset: name of the data set.
        positive: its classes that count as positive.
        epochs: length of pre-training, with the best epoch kept.
    """

    name: str
    dataset: str
    positive: tuple[int, ...]
    epochs: int = 8


@dataclass(frozen=True)
class Size:
    """How large a tier is.

    Attributes:
        replicates: own split, theta, adapter and batches each.
        meta_tests: fine-tuning runs per replicate.
        search_tests: searches by queries per replicate.
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
    meta_tests: int = 10
    search_tests: int = 1
    epochs_factor: float = 1.0
    tasks: int = 1_200
    literal_tasks: int = 600
    queries: int = QUERIES
    natural_queries: int = 500
    own_queries: int = 1_500
    surrogate_epochs: int = 3
    batch_size: int = 256


SIZES = {
    "paper": Size(
        replicates=10,
        search_tests=10,
        epochs_factor=4.0,
        tasks=1_600,
        literal_tasks=1_600,
        natural_queries=QUERIES,
        own_queries=QUERIES,
        surrogate_epochs=9,
    ),
    "local": Size(),
    "smoke": Size(
        replicates=2,
        meta_tests=2,
        epochs_factor=1.0,
        tasks=48,
        literal_tasks=32,
        queries=60,
        natural_queries=60,
        own_queries=60,
        surrogate_epochs=2,
        batch_size=64,
    ),
}


def spec(place: Place, problem: Problem, variant: str, arm: Arm) -> RunSpec:
    """Return the fully resolved spec of one run."""
    column = f"{problem.name}/{place.metric}"
    bench = _bench_settings(place, problem, variant)
    return resolve(place, column, bench, arm, steps=STEPS)


def _bench_settings(place: Place, problem: Problem, variant: str) -> dict[str, Any]:
    """Return the settings that all rows of a problem and sampling share."""
    size = SIZES[place.tier]
    return {
        "problem": {
            "dataset": problem.dataset,
            "variant": variant,
            "positive": list(problem.positive),
            "max_examples": None,
        },
        "sampling": place.block,
        "backbone": {
            "hidden": [100, 30, 10],
            "slope": 0.01,
            "dropout": 0.2,
            "epochs": max(1, round(problem.epochs * size.epochs_factor)),
            "batch_size": size.batch_size,
            "learning_rate": 5e-3,
        },
        "adapter": {"kind": "dynamic-bias", "size": 16},
        "finetune": {"batch_size": 64},
        "revision": REVISION,
    }

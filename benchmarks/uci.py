"""The UCI protocol, shared by the experiments on tabular data.

70/10/20 random splits, an MLP 100-30-10-1 trained with cross-entropy, d = 16 dynamic
input biases, T = 50 steps, K = 3 (5 % of T, rounded up) observations per trajectory.
"""

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Arm:
    """How a row is run; becomes part of a spec's settings.

    Attributes:
        kind: `method`, `network` or `threshold-shift`, see `benchmarks.arms`.
        name: of the registered method.
        settings: of the method, JSON-able.
        queries: budget of one result.
        meta_tests: repetitions.
        schedule: changes of a network method to the backbone's training schedule.
        from_theta: whether a network method starts from the trained theta.
        diagnose: whether a value function is checked on held-out trajectories.
    """

    kind: str
    name: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    queries: int = 0
    meta_tests: int = 1
    schedule: tuple[tuple[str, Any], ...] = ()
    from_theta: bool = False
    diagnose: bool = False


def method(name: str, **settings: Any) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
    """Return kind, name and settings of an arm that chooses phi."""
    return "method", name, tuple(settings.items())


@dataclass(frozen=True)
class Place:
    """Where a run stands in its table; see `RunSpec`."""

    experiment: str
    tier: str
    block: str
    row: str
    metric: str
    replicate: int


def spec(place: Place, problem: Problem, variant: str, arm: Arm) -> RunSpec:
    """Return the fully resolved spec of one run."""
    return RunSpec(
        experiment=place.experiment,
        tier=place.tier,
        block=place.block,
        row=place.row,
        column=f"{problem.name}/{place.metric}",
        replicate=place.replicate,
        settings={
            **_bench_settings(place, problem, variant),
            "metric": place.metric,
            "arm": {
                "kind": arm.kind,
                "name": arm.name,
                "settings": dict(arm.settings),
                "schedule": dict(arm.schedule),
                "from_theta": arm.from_theta,
            },
            "budget": {"queries": arm.queries, "gradient_steps": STEPS},
            "meta_tests": arm.meta_tests,
            "diagnose": arm.diagnose,
        },
    )


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

"""The arms that tables on images and on tabular data share."""

from dataclasses import dataclass
from typing import Any

from benchmarks.experiments.shared.plans import Plan
from benchmarks.runs.spec import Arm

SEARCHES = ("random-search", "cma-es", "guided-cma")
"""Methods that search by metric queries only."""


@dataclass(frozen=True)
class Size:
    """How often the runs of a tier are repeated.

    Attributes:
        replicates: each with a split, a network, an adapter and batches of its own.
        meta_tests: fine-tuning runs per replicate.
        search_tests: searches by queries per replicate.
        few_replicates: the most that rows have which need no more; None for all.
    """

    replicates: int = 1
    meta_tests: int = 10
    search_tests: int = 1
    few_replicates: int | None = None


@dataclass(frozen=True)
class FinetuningSize(Size):
    """How long networks are fine-tuned at a tier, and with how many queries.

    Attributes:
        steps: of fine-tuning, T.
        observations: of a trajectory, K.
        tasks: trajectories of meta-training.
        batch_size: of fine-tuning.
        value_functions: trained by MetricOpt on one network, each with its meta-tests.
        seeds: of MetricOpt on outputs.
    """

    search_tests: int = 2
    steps: int = 100
    observations: int = 5
    tasks: int = 480
    batch_size: int = 128
    value_functions: int = 3
    seeds: int = 5

    @property
    def queries(self) -> int:
        """What MetricOpt spends, choosing its step included; searches may as much."""
        return self.tasks * self.observations + 20

    @property
    def oracle(self) -> int:
        """Queries of an oracle: as many as 50 dense fine-tunings, or two searches."""
        return max(50 * self.steps, 2 * self.queries)


def method(name: str, **settings: Any) -> Arm:
    """Return an arm that chooses phi by a registered method."""
    return Arm("method", name, settings)


def untouched() -> Plan:
    """Return the pre-trained network as it is."""
    return Plan(method("untouched"))


def loss_only(size: Size, **settings: Any) -> Plan:
    """Return fine-tuning with the loss alone, with settings of the method."""
    return Plan(method("loss-only", **settings), meta_tests=size.meta_tests)


def dense(size: Size, steps: int) -> Plan:
    """Return loss-only fine-tuning with the metric evaluated at every step."""
    return Plan(method("loss-only-dense"), queries=steps, meta_tests=size.meta_tests)


def searches(size: Size, queries: int, **settings: Any) -> dict[str, Plan]:
    """Return the searches by queries, by row, with settings of their methods."""
    return {
        name: Plan(method(name, **settings), queries, size.search_tests)
        for name in SEARCHES
    }


def controls(
    size: Size, *, steps: int, queries: int, **settings: Any
) -> dict[str, Plan]:
    """Return what every method has to beat, by row.

    Args:
        size: how often runs are repeated.
        steps: gradient steps of fine-tuning, T.
        queries: budget of a search.
        **settings: of the searches.
    """
    return {
        "cross-entropy": untouched(),
        "loss-only": loss_only(size),
        "loss-only-dense": dense(size, steps),
        **searches(size, queries, **settings),
    }

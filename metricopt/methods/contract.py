"""The contract of a method: a way to choose phi for a task within a budget."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from metricopt.algorithm1.recipe import MetaTrained, Progress
from metricopt.errors import ConfigError
from metricopt.methods.known import Known
from metricopt.methods.result import Budget, FinetuneResult
from metricopt.registry import Registry
from metricopt.tasks.task import Task

Sees = Literal[
    "metric values",
    "loss gradients",
    "outputs and labels",
    "edited predictions",
    "formula",
    "test",
]
"""What a way of choosing knows of a problem, most hidden first.

`metric values`: the metric at a phi, nothing else. `loss gradients`: also the loss on
the train split. `outputs and labels`: also those of the observe split. `edited
predictions`: also the metric of predictions that are not the network's. `formula`: how
the metric is computed. `test`: the test split. Results are compared within one of
these. The last two are ceilings.
"""


@dataclass(frozen=True)
class Preparation:
    """What a method made once for a task, for all its runs to share.

    Attributes:
        queries: metric queries it took.
        tensors: what is shared, by name.
        facts: numbers that go with it, by name.
    """

    queries: int = 0
    tensors: dict[str, Tensor] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)


class Method(ABC):
    """A way to choose phi for a task within a budget.

    Callers use these methods only, never the class or its attributes. Rows are
    independent repetitions (meta-tests) run in lock-step; each starts at a phi of its
    own and is charged for its own queries plus all shared ones.

    Attributes:
        sees: what the method knows of a task.
        asks_for_evidence: whether it returns phi = 0 where there is no evidence of a
            gain on other examples.
        looks_at_clock: whether its search ends by itself where `task.is_over`; any
            other is cut off there.
    """

    sees: ClassVar[Sees] = "metric values"
    asks_for_evidence: ClassVar[bool] = False
    looks_at_clock: ClassVar[bool] = False

    def suits(self, task: Task) -> bool:
        """Return whether the method can work on a task."""
        return True

    def fitted(self, budget: Budget) -> "Method":
        """Return the method with its open settings fitted to a budget."""
        return self

    def asking(self, level: float) -> "Method":
        """Return the method that wants a gain of so many standard errors.

        Raises:
            ConfigError: if it asks for no evidence of a gain.
        """
        raise ConfigError(
            "level says how much evidence of a gain is wanted, and needs no_harm=True "
            "or the method metricopt-outputs"
        )

    def knowing(self, known: Known, adapter: Mapping[str, str]) -> "Method":
        """Return the method with what was learned of the metric on another network.

        Args:
            known: what was learned.
            adapter: what `describe` returns of the adapter the method is to work on.

        Raises:
            ConfigError: if the method has no use for it, or phi means something else.
        """
        raise ConfigError(
            f"{method_name(self)} has no use for a {type(known).__name__}; "
            "metricopt-outputs takes KnownStatistics, metricopt a KnownValueFunction, "
            "metricopt-learned a KnownOptimizer"
        )

    def starting(self, phi: Tensor) -> "Method":
        """Return the method that fine-tunes from a phi instead of random ones.

        Args:
            phi: adapter parameters, [1, d] or one for each row, [R, d].

        Raises:
            ConfigError: if the method has no start that could be chosen.
        """
        raise ConfigError(f"{method_name(self)} cannot start from a given phi")

    def preparation_key(self, budget: Budget) -> object | None:
        """Return a JSON-able key of all that determines `prepare` on a given task.

        Runs with equal keys may share one preparation. None: there is nothing to share.

        Raises:
            ConfigError: if the budget does not allow the preparation.
        """
        return None

    def prepare(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        progress: Progress | None = None,
    ) -> Preparation:
        """Make what all runs on a task share, within the budget.

        Args:
            task: counts queries.
            budget: budget of one result; queries made here are charged to every run.
            generator: source of all randomness.
            progress: called during a long preparation.

        Raises:
            ConfigError: if the budget does not allow it.
        """
        return Preparation()

    @abstractmethod
    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Choose phi for `rows` independent repetitions.

        Args:
            task: what to improve; counts queries.
            budget: what may be spent for one row.
            generator: source of all randomness. Methods that start phi at random first
                draw `metricopt.tasks.descent.paired_streams`, to be compared in pairs.
            rows: number of repetitions R.
            prepared: what `prepare` returned for this task; made now if None.

        Returns:
            The chosen phi [R, d] with what was spent, including the queries of the
            preparation; never more than the budget.
        """

    def value_function(self, prepared: Preparation) -> MetaTrained | None:
        """Return the value function of a preparation; None if the method has none."""
        return None


METHODS: Registry[type[Method]] = Registry(
    "method",
    "metricopt.methods",
    "metricopt.algorithm1",
    "metricopt.algorithm_s1",
    "metricopt.on_outputs",
    base=Method,
)


def resolve_method(method: str | Method) -> Method:
    """Return the method of a name, with default settings; a `Method` as it is."""
    if isinstance(method, Method):
        return method
    return METHODS.get(method)()


def method_name(method: str | Method) -> str:
    """Return the registered name of a method; without one, the name of its class."""
    if isinstance(method, str):
        return method
    names = [name for name in METHODS if METHODS.get(name) is type(method)]
    return names[0] if names else type(method).__name__

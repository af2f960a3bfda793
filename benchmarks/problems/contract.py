"""The contract of a pipeline: what runs are made on, and judged by."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from benchmarks.problems.choices import Choice, NetworkCost, Values
from benchmarks.problems.prerequisite import Forecast, Prerequisite
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import MetricOptError
from metricopt.metrics.base import Metric
from metricopt.registry import Registry


class SealedError(MetricOptError):
    """The test split was read while an arm was at work."""


class Pipeline(ABC):
    """What runs are made on and judged by, of one problem and replicate.

    The runner asks for nothing else. What its arms ask for besides, a pipeline of their
    kind has: `NetworkPipeline` for networks with an adapter, `EpisodesPipeline` for
    learners of few-shot tasks. A subclass of these registers itself by name in
    `PIPELINES`.

    Args:
        settings: what decides the pipeline, of type `settings_type`.
        replicate: decides everything random.

    Attributes:
        settings_type: dataclass of the settings, decoded strictly.
        device: where networks run.
        shares_columns: whether one worker takes the runs of several columns together;
            False if a pipeline is expensive enough for a worker of its own.
        network_data: what records say of a network that existed before the run.
        network_cost: what a method took to train the network; every run is charged with
            it.
        prerequisites: what has to exist before a run, each after the one it continues
            from. If the settings do not go together, a ConfigError tells it here,
            before anything is made.
    """

    settings_type: ClassVar[type[Any]]
    device = torch.device("cpu")
    shares_columns: ClassVar[bool] = True
    network_data: ClassVar[Mapping[str, str]] = {}
    network_cost = NetworkCost()
    prerequisites: Sequence[Prerequisite] = ()

    def __init__(self, settings: Any, replicate: int) -> None:
        self.settings = settings
        self.replicate = replicate
        self._sealed = False

    @property
    @abstractmethod
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        return {"split": self.replicate}

    def make_shared(self) -> None:
        """Make what its runs share and the cache keeps; by default there is nothing."""
        return

    def forecast(self) -> Forecast | None:
        """Return what its network takes, without data; None for next to nothing."""
        return None

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes that decoded images take in the cache, without data.

        They go by what is decoded, as pipelines share it.
        """
        return {}

    def metric(self, unit: Unit) -> Metric:
        """Return a metric as it reads the outputs of this network."""
        return metric_of(unit)

    def metrics(self, units: Sequence[Unit]) -> Mapping[str, Metric]:
        """Return several metrics by label."""
        return {unit.label: self.metric(unit) for unit in units}

    @abstractmethod
    def evaluate(
        self, choices: Sequence[Choice], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice on a split.

        Args:
            choices: what is judged.
            split: `observe` or `test`.
            metrics: metrics by label.

        Raises:
            SealedError: if the split is `test` and the pipeline is sealed.
        """

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with a picture of what a choice changes on the test split.

        Empty where nothing is drawn.
        """
        return {}

    def check_open(self, split: str) -> None:
        """Refuse the test split while an arm is at work.

        Raises:
            SealedError: if the split is `test` and the pipeline is sealed.
        """
        if split == "test" and self._sealed:
            raise SealedError(
                "the test split is read once, by the runner, after the arm has chosen; "
                "an arm asked for it before that"
            )

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """Keep the test split from being read inside the context."""
        before, self._sealed = self._sealed, True
        try:
            yield
        finally:
            self._sealed = before


PIPELINES: Registry[type[Pipeline]] = Registry("pipeline", "benchmarks.problems")


def make_pipeline(unit: Unit, replicate: int) -> Pipeline:
    """Return the pipeline that a spec names.

    Raises:
        ConfigError: if its name is unknown, or the settings do not fit its kind.
    """
    kind = PIPELINES.get(unit.name)
    return kind(decode(kind.settings_type, unit.settings), replicate)

"""The contract of a pipeline: a problem with its network, as the suite runs it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from baselines.network_methods.contract import NetworkMethod, NetworkResult
from baselines.validation import Validation
from benchmarks.problems.choices import Choice, NetworkCost
from benchmarks.problems.forecast import Forecast
from benchmarks.runs.codec import decode
from benchmarks.runs.metrics import metric_of
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, MetricOptError
from metricopt.metrics.base import Metric
from metricopt.process.seeding import Seeds
from metricopt.reading.outputs import Outputs
from metricopt.registry import Registry
from metricopt.tasks.task import Task

Values = dict[str, Tensor]
"""Native values [R] of several metrics, by the label of the metric."""


class SealedError(MetricOptError):
    """The test split was read while an arm was at work."""


class Prerequisite(ABC):
    """Something that is made before any run, with all cores: a pre-trained network.

    Attributes:
        name: readable.
        digest: identity.
    """

    name: str
    digest: str

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it is available: made on this machine, or released."""

    @property
    @abstractmethod
    def is_made(self) -> bool:
        """Whether it was made on this machine."""

    @abstractmethod
    def make(self) -> None:
        """Make it if it is missing, with progress on the terminal.

        Raises:
            DivergedError: if it cannot be made.
        """

    @abstractmethod
    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""


class Pipeline(ABC):
    """Splits, network and adapter of one problem and replicate.

    A subclass registers itself by name in `PIPELINES` and names the dataclass of its
    settings.

    Args:
        settings: what decides the pipeline, of type `settings_type`.
        replicate: decides split, network, adapter and batches.

    Attributes:
        settings_type: dataclass of the settings, decoded strictly.
        device: where the network runs.
        shares_columns: whether one worker takes the runs of several columns together;
            False if a pipeline is expensive enough for a worker of its own.
    """

    settings_type: ClassVar[type[Any]]
    device = torch.device("cpu")
    shares_columns: ClassVar[bool] = True

    def __init__(self, settings: Any, replicate: int) -> None:
        self.settings = settings
        self.replicate = replicate
        self._sealed = False

    @classmethod
    def make(cls, unit: Unit, replicate: int) -> Self:
        """Return the pipeline of a spec.

        Raises:
            ConfigError: if the settings do not fit this kind of pipeline.
        """
        return cls(decode(cls.settings_type, unit.settings), replicate)

    @property
    @abstractmethod
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""

    @property
    @abstractmethod
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline, JSON-able."""

    @property
    @abstractmethod
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of a network that existed before the run."""
        return {}

    @property
    def network_cost(self) -> NetworkCost:
        """What a method took to train the network; every run is charged with it."""
        return NetworkCost()

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        return {"split": self.replicate}

    @property
    def training_shares(self) -> Tensor | None:
        """Class shares of the mini-batches the network was trained on, shape [K].

        None where they are not known, or mean nothing for deployment.
        """
        return None

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """What has to exist before a run, each after the one it continues from.

        Raises:
            ConfigError: if the settings do not go together; nothing is made then.
        """
        return ()

    def forecast(self) -> Forecast | None:
        """Return what its network takes, without data; None for next to nothing."""
        return None

    def metric(self, unit: Unit) -> Metric:
        """Return a metric as it reads the outputs of this network."""
        return metric_of(unit)

    def metrics(self, units: Sequence[Unit]) -> Mapping[str, Metric]:
        """Return several metrics by label."""
        return {unit.label: self.metric(unit) for unit in units}

    @property
    @abstractmethod
    def adapter_settings(self) -> Mapping[str, str]:
        """What gives phi its meaning; see `NetworkAdapter.describe`."""

    @abstractmethod
    def task(self, metric: Metric) -> Task:
        """Return a task with a query counter of its own, on the observe split."""

    @abstractmethod
    def oracle_task(self, metric: Metric) -> Task:
        """Return a task that queries the test split: for oracles alone.

        Raises:
            SealedError: if the pipeline is sealed.
        """

    @abstractmethod
    def evaluate(
        self, choices: Sequence[Choice], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice on a split.

        Args:
            choices: what is judged.
            split: `observe` or `test`.
            metrics: by label.

        Raises:
            SealedError: if the split is `test` and the pipeline is sealed.
        """

    @abstractmethod
    def outputs(self) -> Outputs:
        """Return the outputs of the untouched network on observe.

        Class outputs [N, C]; a tuple of tensors [N, ...] where the network returns one.
        """

    @abstractmethod
    def validation(self, metric: Metric, limit: int | None = None) -> Validation:
        """Return metered access to a metric on the observe split."""

    @abstractmethod
    def train(
        self,
        method: NetworkMethod,
        validation: Validation,
        *,
        generator: torch.Generator,
        changes: Mapping[str, Any],
        from_theta: bool,
    ) -> NetworkResult:
        """Train a network by a method.

        Args:
            method: how.
            validation: its access to the metric.
            generator: source of all randomness.
            changes: to the training of this pipeline's own network, by setting.
            from_theta: whether to start from the trained network or from random
                weights.
        """

    def continued(
        self, phi: Tensor, changes: Mapping[str, Any], *, generator: torch.Generator
    ) -> "Pipeline":
        """Return the same problem with a network that was trained on, with phi in it.

        Args:
            phi: adapter parameters [d], which stay as they are.
            changes: to the training of this pipeline's own network, by setting.
            generator: source of all randomness.

        Raises:
            ConfigError: if this pipeline does not train networks further.
        """
        raise ConfigError(f"{type(self).__name__} does not train its network further")

    def predict(self, inputs: Tensor, phi: Tensor) -> Outputs:
        """Return the outputs of the network with phi [d] in it, of inputs [n, ...]."""
        raise ConfigError(f"{type(self).__name__} has no adapter to predict with")

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with a picture of what a choice changes on the test split.

        Empty where nothing is drawn.
        """
        return {}

    def train_loss(self, phi: Tensor) -> Tensor | None:
        """Return the loss of phi [B, d] on some training examples, shape [B], or None.

        The diagnosis uses it to find how well the loss ranks phi.
        """
        return None

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """Keep the test split from being read inside the context."""
        before, self._sealed = self._sealed, True
        try:
            yield
        finally:
            self._sealed = before

    def require_open(self, split: str) -> None:
        """Check that a split may be read now.

        Raises:
            SealedError: if it is `test` and the pipeline is sealed.
        """
        if split == "test" and self._sealed:
            raise SealedError(
                "the test split is read once, by the runner, after the arm has chosen; "
                "an arm asked for it before that"
            )


PIPELINES: Registry[type[Pipeline]] = Registry("pipeline", "benchmarks.problems")


def make_pipeline(unit: Unit, replicate: int) -> Pipeline:
    """Return the pipeline that a spec names.

    Raises:
        ConfigError: if its name is unknown, or the settings do not fit its kind.
    """
    return PIPELINES.get(unit.name).make(unit, replicate)

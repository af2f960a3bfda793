"""The contract of a pipeline whose runs adapt a network, or train one."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from baselines.network_methods.contract import NetworkMethod, NetworkResult
from baselines.training.batches import Batches
from baselines.training.optimization import Training
from baselines.validation import Validation
from benchmarks.problems.choices import Choice, JudgedSplit, Values
from benchmarks.problems.contract import Pipeline
from benchmarks.problems.portfolio import suite_portfolio
from benchmarks.problems.splits import Splits
from benchmarks.runs.codec import encode
from metricopt.adapters.base import Adapter
from metricopt.errors import ConfigError
from metricopt.losses.contract import Loss
from metricopt.losses.portfolio import Portfolio
from metricopt.metrics.base import Metric
from metricopt.process.seeding import Seeds
from metricopt.reading.inputs import Inputs, tensors_of
from metricopt.reading.outputs import Outputs, each, targets_at
from metricopt.tasks.encoding import Encoded, encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.row_losses import batched_loss
from metricopt.tasks.sampling import Sampler

LOSS_EXAMPLES, LOSS_ROWS = 1_000, 4


class NetworkPipeline(Pipeline):
    """Splits, a frozen network and its adapter, of one problem and replicate.

    Everything before the first site of the adapter is computed once per split.

    Args:
        settings: what decides the pipeline, of type `settings_type`.
        replicate: decides split, network, adapter and batches.

    Attributes:
        examples_at_once: examples a trained network sees at a time.
        own_losses: the portfolio of a network whose outputs are no class scores.
        training_shares: class shares of the mini-batches the network was trained on,
            shape [K]; None where they are not known, or mean nothing for deployment.
    """

    examples_at_once: ClassVar[int] = 8_192
    own_losses: ClassVar[Portfolio] = {}
    training_shares: Tensor | None = None

    def __init__(self, settings: Any, replicate: int) -> None:
        super().__init__(settings, replicate)
        self._rates: dict[tuple[str, int, float], float] = {}
        self._judged: dict[str, JudgedSplit] = {}

    @property
    @abstractmethod
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""

    @property
    @abstractmethod
    def splits(self) -> Splits:
        """The three splits."""

    @property
    @abstractmethod
    def adapter(self) -> Adapter:
        """The adapter of the trained network."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What fine-tuning follows the gradient of."""

    @property
    @abstractmethod
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""

    @abstractmethod
    def network_start(self, *, from_theta: bool) -> torch.nn.Module:
        """Return the trained network, or one as before its training."""

    @abstractmethod
    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches a network is trained on, with changes by setting."""

    @abstractmethod
    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes by setting."""

    @property
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""
        return {"variant": self.splits.variant, "digest": self.splits.digest}

    def make_shared(self) -> None:
        """Make the network and the features of all splits."""
        for name in ("train", "observe", "test"):
            self.encoded(name)

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline, JSON-able."""
        settings: dict[str, Any] = encode(self.settings)
        return settings | {"data": self.splits.digest, "replicate": self.replicate}

    @property
    def adapter_settings(self) -> Mapping[str, str]:
        """What gives phi its meaning; see `NetworkAdapter.describe`."""
        return self.adapter.describe()

    def task(self, metric: Metric) -> NetworkTask:
        """Return a task with a query counter of its own, on the observe split."""
        return self._task(metric, "observe")

    def _task(self, metric: Metric, queried: str) -> NetworkTask:
        # The rate of the loss is the same whichever run asks first.
        drawing = Drawing(
            self.sampler, self.seeds, self._rates, suite_portfolio, self.own_losses
        )
        return NetworkTask(
            self.adapter,
            self.loss,
            metric,
            train=self.encoded("train"),
            observe=self.encoded(queried),
            drawing=drawing,
        )

    def oracle_task(self, metric: Metric) -> NetworkTask:
        """Return a task that queries the test split: for oracles alone.

        Raises:
            SealedError: if the pipeline is sealed.
        """
        return self._task(metric, "test")

    def evaluate(
        self, choices: Sequence[Choice], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice on a split."""
        return self.judged(split).evaluate(choices, metrics)

    def outputs(self) -> Outputs:
        """Return the outputs of the untouched network on observe.

        Class outputs [N, C]; a tuple of tensors [N, ...] where the network returns one.
        """
        return self.judged("observe").outputs

    def class_outputs(self, outputs: Any) -> Outputs:
        """Return the outputs that are class scores: by default all of them."""
        return outputs

    def validation(self, metric: Metric, limit: int | None = None) -> Validation:
        """Return metered access to a metric on the observe split."""
        return Validation(metric, self.splits.observe, limit=limit)

    def train(
        self,
        method: NetworkMethod,
        validation: Validation,
        *,
        generator: torch.Generator,
        changes: Mapping[str, Any],
        from_theta: bool,
    ) -> NetworkResult:
        """Train a network by a method, on this pipeline's batches.

        Args:
            method: how it is trained.
            validation: access of the method to the metric.
            generator: source of all randomness.
            changes: to the training of this pipeline's own network, by setting.
            from_theta: whether to start from the trained network; see `network_start`.
        """
        # The adapter may have frozen theta already.
        start = copy.deepcopy(self.network_start(from_theta=from_theta))
        return method.train(
            start.requires_grad_(True),
            self.batches(changes),
            validation,
            training=self.training(changes),
            generator=generator,
        )

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

    @torch.no_grad()
    def predict(self, inputs: Inputs, phi: Tensor) -> Outputs:
        """Return the outputs of the network with phi [d] in it, of inputs [n, ...]."""
        features = self.adapter.encode(inputs)
        device = tensors_of(inputs)[0].device
        outputs = self.adapter.predict(features, phi[None].to(device))
        return each(lambda part: part[0], outputs)

    @torch.no_grad()
    def train_loss(self, phi: Tensor) -> Tensor:
        """Return the loss of phi [B, d] on the first training examples, shape [B].

        The diagnosis uses it to find how well the loss ranks phi.
        """
        split = self.encoded("train")
        features = split.batch(slice(LOSS_EXAMPLES))
        first = torch.arange(min(LOSS_EXAMPLES, len(split)))
        row_losses = batched_loss(self.loss)
        return torch.cat(
            [
                row_losses(
                    self.adapter.predict(features, part),
                    targets_at(split.targets, first.expand(len(part), -1)),
                )
                for part in phi.to(split.device).split(LOSS_ROWS)
            ]
        )

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it; pipelines may keep it on disk."""
        return encoded(self.adapter, examples)

    def encoded(self, name: str) -> Encoded:
        """Return a split as the adapter encodes it, computed once."""
        return self.judged(name).encoded

    def judged(self, name: str) -> JudgedSplit:
        """Return a split for judging.

        Raises:
            SealedError: if it is `test` and the pipeline is sealed.
        """
        self.check_open(name)
        return self._judged.setdefault(name, JudgedSplit(self, name))

"""The base class of pipelines with an adapter: tasks, outputs and metrics."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from baselines.network_methods.contract import NetworkMethod, NetworkResult
from baselines.training.batches import Batches
from baselines.training.optimization import Training
from baselines.validation import Validation
from benchmarks.problems.choices import Adapted, Choice, Shifted, Trained
from benchmarks.problems.contract import Pipeline, Values
from benchmarks.problems.features import kept_features
from benchmarks.problems.portfolio import suite_portfolio
from benchmarks.runs.codec import encode
from metricopt.adapters.base import Adapter
from metricopt.adapters.film import FiLM
from metricopt.losses.contract import Loss
from metricopt.losses.portfolio import Portfolio
from metricopt.metrics.base import Metric
from metricopt.reading.outputs import Outputs, each, joined, targets_at
from metricopt.tasks.encoding import Encoded, encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.row_losses import batched_loss
from metricopt.tasks.sampling import Sampler

LOSS_EXAMPLES, LOSS_ROWS = 1_000, 4


@dataclass(frozen=True)
class Splits:
    """The splits of a problem, with inputs as the network takes them.

    Attributes:
        train, observe, test: the three splits; `train` gives fine-tuning its gradients.
        variant: label of the data set it comes from.
        digest: sha256 of its decoded arrays.
    """

    train: Examples
    observe: Examples
    test: Examples
    variant: str
    digest: str

    def named(self, name: str) -> Examples:
        """Return the split called `train`, `observe` or `test`."""
        splits = {"train": self.train, "observe": self.observe, "test": self.test}
        return splits[name]


class AdaptedPipeline(Pipeline):
    """A pipeline made of splits, a frozen network and its adapter.

    Everything before the first site of the adapter is computed once per split.

    Attributes:
        examples_at_once: examples a trained network sees at a time.
    """

    examples_at_once: ClassVar[int] = 8_192

    def __init__(self, settings: Any, replicate: int) -> None:
        super().__init__(settings, replicate)
        self._rates: dict[tuple[str, int], float] = {}
        self._encoded: dict[str, Encoded] = {}
        self._outputs: dict[str, Outputs] = {}

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

    @property
    def own_losses(self) -> Portfolio:
        """The portfolio of a network whose outputs are no class scores."""
        return {}

    @abstractmethod
    def network_start(self, *, from_theta: bool) -> torch.nn.Module:
        """Return the trained network, or one with random weights."""

    @abstractmethod
    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches a network is trained on, with changes."""

    @abstractmethod
    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""

    @property
    def data(self) -> dict[str, str]:
        """What records say of the data."""
        return {"variant": self.splits.variant, "digest": self.splits.digest}

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline."""
        settings: dict[str, Any] = encode(self.settings)
        facts = {"data": self.splits.digest, "replicate": self.replicate}
        return settings | facts

    @property
    def adapter_settings(self) -> Mapping[str, str]:
        """What gives phi its meaning."""
        return self.adapter.describe()

    def task(self, metric: Metric) -> NetworkTask:
        """Return a task with a query counter of its own."""
        return self._task(metric, "observe")

    def oracle_task(self, metric: Metric) -> NetworkTask:
        """Return a task that queries the test split."""
        return self._task(metric, "test")

    def evaluate(
        self, choices: Sequence[Choice], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice on a split; all phi in one pass."""
        self.require_open(split)
        adapted = [choice.phi for choice in choices if isinstance(choice, Adapted)]
        judged = iter(self._of_phi(adapted, split, metrics))
        return [
            next(judged)
            if isinstance(choice, Adapted)
            else self._of_outputs(choice, split, metrics)
            for choice in choices
        ]

    def outputs(self) -> Outputs:
        """Return the class outputs of the untouched network on observe."""
        return self._untouched("observe")

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
        """Train a network by a method, on this pipeline's batches."""
        # The adapter may have frozen theta already.
        start = copy.deepcopy(self.network_start(from_theta=from_theta))
        return method.train(
            start.requires_grad_(True),
            self.batches(changes),
            validation,
            training=self.training(changes),
            generator=generator,
        )

    @torch.no_grad()
    def train_loss(self, phi: Tensor) -> Tensor:
        """Return the loss of phi [B, d] on the first training examples, shape [B]."""
        split = self.encoded("train")
        phi = phi.to(split.device)
        features = split.batch(slice(LOSS_EXAMPLES))
        first = torch.arange(min(LOSS_EXAMPLES, len(split)))
        row_losses = batched_loss(self.loss)
        return torch.cat(
            [
                row_losses(
                    self.adapter.predict(features, part),
                    targets_at(split.targets, first.expand(len(part), -1)),
                )
                for part in phi.split(LOSS_ROWS)
            ]
        )

    @torch.no_grad()
    def predict(self, inputs: Tensor, phi: Tensor) -> Outputs:
        """Return the outputs of the network with phi [d] in it, of inputs [n, ...]."""
        features = self.adapter.encode(inputs)
        outputs = self.adapter.predict(features, phi[None].to(inputs.device))
        return each(lambda part: part[0], outputs)

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it; pipelines may keep it on disk."""
        return encoded(self.adapter, examples)

    def kept(
        self, film: FiLM, name: str, examples: Examples, **facts: object
    ) -> Encoded:
        """Return a split as FiLM encodes it, kept on disk for other runs.

        Args:
            film: of the pre-trained network.
            name: of the split.
            examples: of the split.
            **facts: what else determines the features, JSON-able.
        """
        key = {
            "theta": self.network_data["theta"],
            "network": self.settings.backbone.network,
            "sites": [site.name for site in film.sites],
            "problem": encode(self.settings.problem),
            "data": self.splits.digest,
            "replicate": self.replicate,
            "split": name,
            "examples": len(examples),
        }
        return kept_features(film, examples, key | facts)

    def encoded(self, name: str) -> Encoded:
        """Return a split as the adapter encodes it, computed once."""
        self.require_open(name)
        if name not in self._encoded:
            self._encoded[name] = self.encode(name, self.splits.named(name))
        return self._encoded[name]

    def _task(self, metric: Metric, queried: str) -> NetworkTask:
        return NetworkTask(
            self.adapter,
            self.loss,
            metric,
            train=self.encoded("train"),
            observe=self.encoded(queried),
            # The rate of the loss is the same whichever run asks first.
            drawing=Drawing(
                self.sampler,
                self.seeds,
                self._rates,
                suite_portfolio,
                self.own_losses,
            ),
        )

    def _of_phi(
        self, rows: Sequence[Tensor], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        if not rows:
            return []
        judge = Judge(self.adapter, self.encoded(split))
        found = judge.evaluate(torch.cat(list(rows)), metrics)
        sizes = [len(phi) for phi in rows]
        parts = {name: values.split(sizes) for name, values in found.items()}
        return [
            {name: part[place] for name, part in parts.items()}
            for place in range(len(rows))
        ]

    def _of_outputs(
        self, choice: Choice, split: str, metrics: Mapping[str, Metric]
    ) -> Values:
        examples = self.splits.named(split)
        if isinstance(choice, Shifted):
            outputs = choice.shift(self._untouched(split))
        else:
            assert isinstance(choice, Trained)
            starts = range(0, len(examples), self.examples_at_once)
            parts = (
                examples.batch(slice(at, at + self.examples_at_once)) for at in starts
            )
            outputs = joined([choice.predict(part) for part in parts], 0)
        one_row = each(lambda part: part[None], outputs)
        return {
            name: metric.values(one_row, examples.targets)
            for name, metric in metrics.items()
        }

    def class_outputs(self, outputs: Any) -> Outputs:
        """Return the outputs that are class scores: by default all of them."""
        return outputs

    def _untouched(self, split: str) -> Outputs:
        if split not in self._outputs:
            judge = Judge(self.adapter, self.encoded(split))
            outputs = judge.outputs(torch.zeros(1, self.adapter.size))
            row = each(lambda part: part[0], outputs)
            self._outputs[split] = self.class_outputs(row)
        return self._outputs[split]

"""The contract of a bench: one problem, sampling and replicate, and tasks on it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.losses import Loss
from metricopt.adapters.base import Adapter
from metricopt.metrics.base import Metric
from metricopt.network_task import (
    EncodedSplit,
    Judge,
    NetworkTask,
    batched_loss,
    encoded,
)
from metricopt.sampling import BalancedSampler, NaturalSampler, Sampler, Split
from metricopt.seeding import derive_seed
from metricopt.trajectories import Rollout, select_rate

LOSS_EXAMPLES, LOSS_ROWS = 1_000, 4


@dataclass(frozen=True)
class Splits:
    """A problem, split, its inputs as the network takes them.

    Attributes:
        train, observe, test: the three splits; gradients of fine-tuning are of `train`.
        variant: label of the data set it comes from.
        digest: sha256 of its decoded arrays.
    """

    train: Split
    observe: Split
    test: Split
    variant: str
    digest: str


class Bench(ABC):
    """Splits, theta and adapter of one problem, sampling and replicate.

    Args:
        settings: the part of a spec's settings that all its rows share: `problem`,
            `sampling`, `backbone`, `adapter`, `finetune` and `revision`.
        replicate: decides split, theta, adapter and batches.

    Attributes:
        prepared: whether theta is made before all runs, see `benchmarks.networks`.
        device: where its network runs.
    """

    prepared = False
    device = torch.device("cpu")

    def __init__(self, settings: dict[str, Any], replicate: int) -> None:
        self.settings = settings
        self.replicate = replicate
        self._rates: dict[tuple[str, int], float] = {}

    @property
    @abstractmethod
    def splits(self) -> Splits:
        """The three splits."""

    @property
    @abstractmethod
    def theta(self) -> nn.Module:
        """The pre-trained network, in evaluation mode."""

    @property
    @abstractmethod
    def adapter(self) -> Adapter:
        """The adapter of theta."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What fine-tuning follows the gradient of."""

    @property
    @abstractmethod
    def place(self) -> tuple[object, ...]:
        """What the seeds of this bench depend on, its replicate excepted."""

    @property
    def data(self) -> dict[str, str]:
        """What its records say of the data."""
        return {"variant": self.splits.variant, "digest": self.splits.digest}

    @property
    def network_data(self) -> dict[str, str]:
        """What its records say of a network that was there before."""
        return {}

    @property
    def theta_seed(self) -> int:
        """Seed of theta's first weights."""
        return self.seed("theta")

    def judged_by(self, metric: Metric) -> Metric:
        """Return the metric as it reads the outputs of this network."""
        return metric

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this bench."""
        return {
            **self.settings,
            "data": self.splits.digest,
            "replicate": self.replicate,
        }

    def seed(self, *names: object) -> int:
        """Return the seed of a purpose, different for every bench."""
        return derive_seed(*self.place, self.replicate, *names)

    def generator(self, *names: object) -> torch.Generator:
        """Return a generator for a purpose."""
        return torch.Generator().manual_seed(self.seed(*names))

    @property
    def balanced(self) -> bool:
        """Whether mini-batches are class-balanced."""
        return bool(self.settings["sampling"] == "balanced")

    def task(self, metric: Metric) -> NetworkTask:
        """Return a task with its own query counter."""
        return self._task(metric, self._observe)

    def oracle_task(self, metric: Metric) -> NetworkTask:
        """Return a task that queries the test split: for oracles alone."""
        return self._task(metric, self._test)

    def judge(self, metric: Metric) -> Judge:
        """Return the judge on the test split; for the runner alone."""
        test = self._test
        metric = self.judged_by(metric)
        return Judge(self.adapter, metric, test.features, test.targets)

    @torch.no_grad()
    def train_loss(self, phi: Tensor) -> Tensor:
        """Return the loss of phi [B, d] on the first training examples, shape [B]."""
        phi = phi.to(self._train.targets.device)
        features = tuple(part[:LOSS_EXAMPLES] for part in self._train.features)
        targets = self._train.targets[:LOSS_EXAMPLES]
        row_losses = batched_loss(self.loss)
        return torch.cat(
            [
                row_losses(
                    self.adapter.predict(features, part),
                    targets.expand(len(part), -1),
                )
                for part in phi.split(LOSS_ROWS)
            ]
        )

    def rate(self, task: NetworkTask, optimizer: str, steps: int) -> float:
        """Return the rate of a loss optimizer for so many steps, by the train loss.

        It is the same whichever run asks first.
        """
        asked = (optimizer, steps)
        if asked not in self._rates:
            generator, rollout = self.generator("rate", optimizer), Rollout(steps)
            self._rates[asked] = select_rate(task, optimizer, rollout, generator)
        return self._rates[asked]

    def _task(self, metric: Metric, queried: EncodedSplit) -> NetworkTask:
        return NetworkTask(
            self.adapter,
            self.loss,
            self.judged_by(metric),
            train=self._train,
            observe=queried,
            sampler=self._sampler(),
        )

    def _sampler(self) -> Sampler:
        batch_size = self.settings["finetune"]["batch_size"]
        if self.balanced:
            return BalancedSampler(self.splits.train.targets.cpu(), batch_size)
        return NaturalSampler(len(self.splits.train), batch_size)

    # All before the first site is computed once for all runs of the bench.
    @cached_property
    def _train(self) -> EncodedSplit:
        return encoded(self.adapter, self.splits.train)

    @cached_property
    def _observe(self) -> EncodedSplit:
        return encoded(self.adapter, self.splits.observe)

    @cached_property
    def _test(self) -> EncodedSplit:
        return encoded(self.adapter, self.splits.test)

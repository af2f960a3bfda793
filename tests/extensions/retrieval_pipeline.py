"""A pipeline for retrieval: classes of digits that the network never saw.

The network returns (logits, embedding), its splits share no class, and their examples
are read as they are needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from baselines.training.batches import Batches, SampledBatches
from baselines.training.loop import Training, TrainingRun, train
from benchmarks.data.registry import load_dataset
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import changed
from metricopt import FiLM, LazySplit, NaturalSampler
from metricopt.process.seeding import Seeds, globally_seeded


@dataclass(frozen=True)
class RetrievalSettings:
    """Everything that decides a retrieval pipeline but its replicate.

    Attributes:
        learned, observed, tested: the digits of the three splits.
        images: used of every digit.
        epochs: of training with cross-entropy.
        embedding: size E of the embedding.
        batch_size: of training and of fine-tuning.
    """

    learned: tuple[int, ...] = (0, 1, 2, 3, 4)
    observed: tuple[int, ...] = (5, 6)
    tested: tuple[int, ...] = (7, 8, 9)
    images: int = 100
    epochs: int = 3
    embedding: int = 8
    batch_size: int = 32


class DigitImages(Dataset):
    """Some images of each of some digits, read one by one.

    Attributes:
        reads: how often an image was read.
    """

    def __init__(self, data: Any, digits: tuple[int, ...], count: int) -> None:
        places = [(data.targets == digit).nonzero()[:count, 0] for digit in digits]
        self.places = torch.cat(places)
        self.images, self.labels = data.inputs, data.targets
        self.reads = 0

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        self.reads += 1
        at = self.places[place]
        return self.images[at], int(self.labels[at])


class Embedder(nn.Module):
    """Two convolutions, an embedding, and logits of the learned digits."""

    def __init__(self, embedding: int, classes: int) -> None:
        super().__init__()
        self.stages = nn.Sequential(
            nn.Conv2d(1, 8, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, embedding, 3, bias=False),
            nn.BatchNorm2d(embedding),
            nn.ReLU(),
        )
        self.head = nn.Linear(embedding, classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        embedding = self.stages(images).mean(dim=(2, 3))
        return self.head(embedding), embedding


def classification(outputs: tuple[Tensor, Tensor], targets: Tensor) -> Tensor:
    """Return the cross-entropy of the logits, the first of the outputs."""
    return nn.functional.cross_entropy(outputs[0], targets)


class RetrievalPipeline(NetworkPipeline):
    """Digits 0 to 4 teach, 5 and 6 are observed, 7 to 9 are the test."""

    settings_type = RetrievalSettings
    settings: RetrievalSettings
    loss = staticmethod(classification)

    @cached_property
    def images(self) -> dict[str, DigitImages]:
        """The images of each split, by its name."""
        digits = self.settings
        parts = {
            "train": digits.learned,
            "observe": digits.observed,
            "test": digits.tested,
        }
        return {
            name: DigitImages(self._data, own, digits.images)
            for name, own in parts.items()
        }

    @cached_property
    def splits(self) -> Splits:
        """The three splits; nothing but their labels is in memory."""
        lazy = {
            name: LazySplit(images, targets=images.labels[images.places])
            for name, images in self.images.items()
        }
        return Splits(**lazy, variant=self._data.label, digest=self._data.digest)

    @property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        return Seeds("retrieval", self.replicate)

    @property
    def sampler(self) -> NaturalSampler:
        """What draws the mini-batches of fine-tuning."""
        return NaturalSampler(len(self.splits.train), self.settings.batch_size)

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches a network is trained on."""
        settings = changed(self.settings, changes)
        return SampledBatches(self.splits.train, settings.batch_size)

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained: observed digits are none it learns."""
        epochs = changed(self.settings, changes).epochs
        return Training(epochs, learning_rate=0.01, keep_best=False)

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with random weights."""
        return self.theta if from_theta else self._fresh()

    @cached_property
    def theta(self) -> nn.Module:
        """The network trained with cross-entropy."""
        network = self._fresh()

        def make() -> Artifact:
            generator = self.seeds.generator("pre-training")
            batches, training = self.batches({}), self.training({})
            train(
                TrainingRun(network, self.loss, batches, training, generator=generator)
            )
            return Artifact(network.state_dict(), {})

        network.load_state_dict(get_or_make("theta", self.key, make).tensors)
        return network.eval()

    @cached_property
    def adapter(self) -> FiLM:
        """A scale and a shift for every number of the embedding."""
        example = self.splits.train.batch(slice(8))
        return FiLM(self.theta, example, form="direct")

    @cached_property
    def _data(self):
        return load_dataset("digits", "full", offline=True)

    def _fresh(self) -> Embedder:
        with globally_seeded(self.seeds.seed("theta")):
            return Embedder(self.settings.embedding, len(self.settings.learned))

"""The contract of a modality, and what decides a problem of one with its network."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from baselines.learned_losses.surrogates.contract import KINDS
from baselines.training.batches import Batches
from baselines.training.optimization import Precision
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from benchmarks.problems.splits import Splits
from benchmarks.runs.codec import later
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError, require_ranges
from metricopt.losses.contract import Loss
from metricopt.process.seeding import make_generator
from metricopt.registry import Registry


@dataclass(frozen=True)
class StructuredProblem:
    """Examples whose answers have structure; the data set says which are the test.

    Attributes:
        modality: name of the modality.
        dataset: name of the data set.
        size: what examples are cut to, as the modality says.
        observed: share of what is to learn from that is kept for metric queries.
        vocabulary: name of a published vocabulary; empty for one that is learned from
            the examples to train on.
    """

    modality: str
    dataset: str
    size: tuple[int, ...]
    observed: float
    vocabulary: str = later("")

    def __post_init__(self) -> None:
        require_ranges("a problem", vars(self), observed="in (0, 1)")

    def two_sizes(self, meaning: str) -> tuple[int, int]:
        """Return the size, which is two numbers.

        Args:
            meaning: of both, for the message.

        Raises:
            ConfigError: if it is not two numbers.
        """
        if len(self.size) != 2:
            raise ConfigError(
                f"the size of a problem of {self.modality} is two numbers, {meaning}; "
                f"got {self.size}"
            )
        first, second = self.size
        return first, second

    def observed_groups(
        self, groups: Sequence[int], purpose: str, replicate: int, label: str, what: str
    ) -> set[int]:
        """Return a random share of groups, whose examples are `observe`.

        Args:
            groups: those of the examples to learn from, in order; each counts once.
            purpose: what is drawn, which seeds the generator.
            replicate: number of the replicate.
            label: what messages call the data.
            what: what messages call groups.

        Raises:
            DataError: if all would be observed, or none.
        """
        order = list(dict.fromkeys(groups))
        count = round(self.observed * len(order))
        if not 0 < count < len(order):
            raise DataError(
                f"{label} has {len(order)} {what}, of which a share of {self.observed} "
                "is observed: expected one or more in each part"
            )
        generator = make_generator(purpose, self.dataset, replicate)
        drawn = torch.randperm(len(order), generator=generator)[:count]
        return {order[place] for place in drawn.tolist()}


@dataclass(frozen=True)
class StructuredTraining(ThetaTraining):
    """How theta is trained, by Adam with one cycle of the rate.

    Attributes:
        precision: "fastest" is bfloat16 where the machine is fast at it.
        weight_decay: factor of the squared weights.
        channels_last: whether images are kept with their channels last in memory.
    """

    loop: ClassVar[Mapping[str, Any]] = {}
    rate: float = 1e-3
    batch_size: int = 32
    precision: Precision = "fastest"
    weight_decay: float = 0.0
    channels_last: bool = False


@dataclass(frozen=True)
class StructuredBackbone:
    """A network and the method that trained it.

    Attributes:
        network: name of a network of the modality.
        base: weights it starts from.
        training: how it was trained.
        taught: the method that trained it.
        revision: raised when code changes networks, so that no old one is reused.
    """

    network: str
    base: BaseWeights
    training: StructuredTraining
    taught: TrainedByMethod
    revision: int


@dataclass(frozen=True)
class StructuredSettings(PretrainedSettings):
    """Everything that decides a pipeline, except its replicate.

    Attributes:
        examples: training examples that fine-tuning sees, the first ones.
    """

    problem: StructuredProblem
    backbone: StructuredBackbone
    batch_size: int = 32
    examples: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        require_ranges("fine-tuning", vars(self), examples=">= 2")


class Modality(ABC):
    """What is particular to a kind of answer.

    Attributes:
        kind: name of the kind of surrogate, which says what the usual loss is.
        usual: what tables call the usual loss.
        sources: data sets by name.
        metrics: what methods work towards, then what networks are judged by, too.
        labels: what tables call these metrics.
        at_once: examples that a network sees at a time when it is judged.
    """

    kind: ClassVar[str]
    usual: ClassVar[str]
    sources: ClassVar[Registry[Any]]
    metrics: ClassVar[tuple[Unit, ...]]
    labels: ClassVar[tuple[str, ...]]
    at_once: ClassVar[int] = 64

    @property
    def loss(self) -> Loss:
        """The usual loss, which fine-tuning follows, too."""
        return KINDS.get(self.kind)().loss

    @property
    def measured(self) -> Mapping[str, str]:
        """What records say of how the metrics were measured, by name."""
        return {}

    def fetch(self, problem: StructuredProblem) -> None:
        """Download what a problem needs beside its data set."""
        return

    def loaded(self, problem: StructuredProblem) -> Any:
        """Return the data set of a problem.

        Raises:
            DataError: if files are missing or wrong.
        """
        return self.sources.get(problem.dataset)().load(offline=True)

    @abstractmethod
    def splits(self, problem: StructuredProblem, replicate: int) -> Splits:
        """Return the splits of a problem for one replicate.

        Raises:
            DataError: if a part would be empty, or files are missing or wrong.
        """

    @abstractmethod
    def fresh(self, problem: StructuredProblem, network: str, seed: int) -> nn.Module:
        """Return a network with random weights."""

    def prepared(self, network: Any, train: Any) -> None:
        """Give a network with random weights what it has to know of the examples."""
        return

    @abstractmethod
    def batches(self, train: Any, recipe: StructuredTraining) -> Batches:
        """Return the mini-batches of a training."""

    @abstractmethod
    def example(self, problem: StructuredProblem) -> Tensor:
        """Return an input of a network, to measure its cost."""

    def counted(self, problem: StructuredProblem) -> tuple[int, int]:
        """Return the examples to learn from, and all, without reading any."""
        learned, tested = self.sources.get(problem.dataset).expected
        return learned, learned + tested

    def pictured(self, test: Any, outputs: Tensor) -> Mapping[str, Any]:
        """Return notes with answers to some examples of the test, for a figure."""
        return {}


MODALITIES: Registry[type[Modality]] = Registry(
    "modality", "benchmarks.problems.structured"
)
"""Kinds of answers by name."""


def modality_of(problem: StructuredProblem) -> Modality:
    """Return the modality of a problem.

    Raises:
        ConfigError: if there is no such modality.
    """
    return MODALITIES.get(problem.modality)()

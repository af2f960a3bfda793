"""What decides a meta-trained learner, and the episodes it is judged on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from benchmarks.data.few_shot.contract import FEW_SHOT
from benchmarks.data.files.decoded import kept_bytes
from benchmarks.problems.episodes.contract import TEST_EPISODES, EpisodeSource
from benchmarks.problems.episodes.images import ImageEpisodes, ImageSettings
from benchmarks.problems.episodes.meta_settings import MetaSettings
from benchmarks.problems.episodes.metrics import ACCURACY, ERROR
from benchmarks.problems.episodes.networks import Conv4Settings, SineMlp
from benchmarks.problems.episodes.sines import SineEpisodes, SineSettings
from benchmarks.runs.spec import Unit


@dataclass(frozen=True, kw_only=True)
class Learning(ABC):
    """Everything that decides a pipeline of episodes, except its replicate.

    Attributes:
        episodes: what is learned.
        network: what learns it.
        training: how all learners are meta-trained.
        learner: a registered learner with its settings; None for what is not trained.
        revision: raised when code changes numbers, so that no old record is reused.
        metric: name of the metric that learners are validated by.
    """

    episodes: Any
    network: Any
    training: MetaSettings
    learner: Unit | None = None
    revision: int = 1
    metric: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """What is learned, by which network, as in names of files."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the inputs of one example."""

    @property
    @abstractmethod
    def examples(self) -> tuple[int, int]:
        """Examples of the support and of the query of an episode to train on."""

    @abstractmethod
    def source(self, replicate: int, *, offline: bool = True) -> EpisodeSource:
        """Return the episodes of a replicate.

        Raises:
            ConfigError: if the data cannot give such episodes.
            DataError: if they are missing or damaged.
        """

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes of decoded images; see `Pipeline`."""
        return {}

    @staticmethod
    @abstractmethod
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of the examples of an episode."""

    def fresh(self, seed: int) -> nn.Module:
        """Return the network with random weights."""
        network: nn.Module = self.network.make(self.episodes, seed)
        return network

    def trained(self) -> Self:
        """Return what decides the learner: not how it is tested."""
        return replace(self, episodes=untested(self.episodes))


@dataclass(frozen=True, kw_only=True)
class ImageLearning(Learning):
    """Classes of images; see `Learning`."""

    episodes: ImageSettings
    network: Conv4Settings
    metric = ACCURACY

    @property
    def label(self) -> str:
        """What is learned, by which network, as in names of files."""
        ways, shots = self.episodes.ways, self.episodes.shots
        return f"{self.episodes.dataset}-{ways}way-{shots}shot-{self.network.label}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the inputs of one example."""
        images = FEW_SHOT.get(self.episodes.dataset)
        return (1 if images.ink else 3, images.side, images.side)

    @property
    def examples(self) -> tuple[int, int]:
        """Examples of the support and of the query of an episode to train on."""
        own = self.episodes
        return own.ways * own.shots, own.ways * own.queries

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes of decoded images; see `Pipeline`."""
        images = FEW_SHOT.get(self.episodes.dataset)()
        return {images.name: kept_bytes(images.count, images.side)}

    def source(self, replicate: int, *, offline: bool = True) -> ImageEpisodes:
        """Return the episodes of a replicate."""
        return ImageEpisodes(self.episodes, replicate, offline=offline)

    @staticmethod
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy."""
        return cross_entropy(outputs, targets)


@dataclass(frozen=True, kw_only=True)
class SineLearning(Learning):
    """Sine waves; see `Learning`."""

    episodes: SineSettings
    network: SineMlp
    metric = ERROR

    @property
    def label(self) -> str:
        """What is learned, by which network, as in names of files."""
        return f"sine-{self.episodes.shots}shot-{self.network.label}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the inputs of one example."""
        return (1,)

    @property
    def examples(self) -> tuple[int, int]:
        """Examples of the support and of the query of an episode to train on."""
        return self.episodes.shots, self.episodes.queries

    def source(self, replicate: int, *, offline: bool = True) -> SineEpisodes:
        """Return the episodes of a replicate."""
        return SineEpisodes(self.episodes, replicate)

    @staticmethod
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error."""
        return mse_loss(outputs, targets)


def untested(episodes: Any) -> Any:
    """Return settings of episodes with the usual number of tests."""
    usual = {"test_episodes": TEST_EPISODES}
    if isinstance(episodes, ImageSettings):
        usual |= {"test_queries": None}
    return replace(episodes, **usual)

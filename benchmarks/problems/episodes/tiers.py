"""Few-shot problems, and the sizes of their tiers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from benchmarks.problems.episodes.images import ImageSettings
from benchmarks.problems.episodes.learning import (
    ImageLearning,
    Learning,
    SineLearning,
)
from benchmarks.problems.episodes.meta_settings import MetaSettings
from benchmarks.problems.episodes.networks import Conv4Settings, SineMlp
from benchmarks.problems.episodes.protocols import episodes_of
from benchmarks.problems.episodes.sines import SineSettings
from benchmarks.problems.problem import Problem, Size
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Settings, Unit


@dataclass(frozen=True)
class EpisodesSize(Size):
    """How often rows are run at a tier; nothing here makes a metric query."""

    replicates: int = 3
    steps: int = 0
    queries: int = 0
    metricopt_queries: int = 0

    def recipe(self, method: str) -> dict[str, Any]:
        """Return no changes: value functions are not learned here."""
        return {}


SMOKE = EpisodesSize(replicates=2)


@dataclass(frozen=True, kw_only=True)
class EpisodeProblem(Problem):
    """Few-shot tasks with a network, and how its learners are meta-trained.

    Attributes:
        learning: episodes, network and training, without a learner.
        pipeline_name: name of the registered pipeline.
        inner: inner settings that all learners share, by name.
        wide: channels of a network that has as many weights as blockIAF has
            meta-parameters; 0 where none is compared.
        steps: inner steps on new tasks; None for as many as in meta-training.
    """

    learning: Learning
    pipeline_name: str
    size: Size = EpisodesSize()
    inner: Mapping[str, Any] = field(default_factory=dict, hash=False)
    wide: int = 0
    steps: int | None = None

    @property
    def tests(self) -> int:
        """New tasks that a learner is judged on."""
        count: int = self.learning.episodes.test_episodes
        return count

    def learned_by(self, name: str, settings: Settings) -> Self:
        """Return the problem with a registered learner, and its settings."""
        learner = Unit(name, {**self.inner, **settings})
        return replace(self, learning=replace(self.learning, learner=learner))

    def widened(self) -> Self:
        """Return the problem with the wider network."""
        network = replace(self.learning.network, channels=self.wide)
        return replace(self, learning=replace(self.learning, network=network))

    def tested_on(self, episodes: int, steps: int | None) -> Self:
        """Return the problem with other tests, after so many inner steps."""
        own = replace(self.learning.episodes, test_episodes=episodes)
        learning = replace(self.learning, episodes=own)
        return replace(self, learning=learning, steps=steps)

    def here(self, offline: bool | None) -> Self:
        """Return the problem as it is, with its data if they may be downloaded.

        Raises:
            ConfigError: if the data that are here cannot give such episodes.
        """
        if offline is False:
            self.learning.source(0, offline=False)
        return self

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it; no output offsets are known here."""
        return Unit(self.pipeline_name, encode(self.learning))


def _images(
    episodes: ImageSettings,
    network: Conv4Settings,
    training: MetaSettings,
    **more: Any,
) -> EpisodeProblem:
    learning = ImageLearning(episodes=episodes, network=network, training=training)
    name = f"{episodes.dataset}/{episodes.ways}-way-{episodes.shots}-shot"
    return EpisodeProblem(
        name=name, learning=learning, pipeline_name="few-shot-images", **more
    )


def omniglot_small(ways: int = 20) -> EpisodeProblem:
    """Return the small sets of Omniglot, one shot, at tier local."""
    episodes = replace(episodes_of("omniglot-small", ways=ways, shots=1), queries=5)
    return _images(
        replace(episodes, test_queries=15),
        Conv4Settings(channels=32),
        MetaSettings(iterations=700, rate=2e-3),
        inner={"rate": 0.1},
        wide=69,
    )


def tiny_imagenet(shots: int) -> EpisodeProblem:
    """Return 100 classes of Tiny ImageNet, 5-way, at tier local."""
    # An iteration with five shots takes three times as long.
    iterations = {1: 900, 5: 400}[shots]
    return _images(
        episodes_of("tinyimagenet-fewshot100", ways=5, shots=shots),
        Conv4Settings(channels=24, shrink=2),
        MetaSettings(iterations=iterations, rate=2e-3),
        inner={"rate": 0.05},
        wide=55,
    )


PAPER = MetaSettings(
    iterations=60_000, batching="vmap", validations=30, validated=600, schedule="steps"
)
"""The poster's released code, with the same meta-optimizer for all learners."""


def mini_imagenet(shots: int) -> EpisodeProblem:
    """Return miniImageNet, 5-way, at tier paper."""
    episodes = episodes_of("miniimagenet", ways=5, shots=shots)
    return _images(episodes, Conv4Settings(), PAPER, wide=361)


def omniglot(ways: int = 20) -> EpisodeProblem:
    """Return Omniglot, one shot, at tier paper."""
    episodes = episodes_of("omniglot", ways=ways, shots=1)
    return _images(episodes, Conv4Settings(), PAPER, inner={"rate": 0.1}, wide=140)


def drawn_classes() -> EpisodeProblem:
    """Return drawn shapes, 5-way 1-shot, at tier smoke."""
    episodes = episodes_of("drawn-classes", ways=5, shots=1)
    return _images(
        replace(episodes, test_episodes=6),
        Conv4Settings(channels=8),
        MetaSettings(iterations=2, episodes=1, validations=1, validated=2),
        size=SMOKE,
        wide=18,
    )


def images(tier: str) -> tuple[EpisodeProblem, ...]:
    """Return the problems of images of a tier."""
    if tier == "smoke":
        return (drawn_classes(),)
    if tier == "local":
        return (omniglot_small(), tiny_imagenet(1), tiny_imagenet(5))
    return (mini_imagenet(1), mini_imagenet(5), omniglot())


def check_of_maml(tier: str) -> tuple[EpisodeProblem, ...]:
    """Return the 5-way tasks of a tier with Omniglot: MAML should nearly solve them."""
    made = {"local": omniglot_small, "paper": omniglot}
    return (made[tier](ways=5),) if tier in made else ()


def sine(tier: str, steps: int) -> EpisodeProblem:
    """Return sine waves from ten points, tested after so many inner steps."""
    smoke = tier == "smoke"
    training = MetaSettings(
        iterations=2 if smoke else 3_000,
        episodes=4 if smoke else 25,
        schedule="constant",
        batching="vmap",
        validations=1,
        validated=2 if smoke else 200,
    )
    episodes = SineSettings(test_episodes=6 if smoke else 600)
    learning = SineLearning(episodes=episodes, network=SineMlp(), training=training)
    return EpisodeProblem(
        name=f"sine/{steps}-steps",
        learning=learning,
        pipeline_name="sine-waves",
        size=SMOKE if smoke else EpisodesSize(),
        steps=steps,
    )

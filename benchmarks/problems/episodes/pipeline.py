"""Pipelines of few-shot tasks: a learner, and new episodes to judge it on."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch

from benchmarks.data.few_shot.contract import TEST
from benchmarks.problems.choices import Choice, OnEpisodes, Values
from benchmarks.problems.contract import PIPELINES, Pipeline, make_pipeline
from benchmarks.problems.episodes.contract import EpisodeSource
from benchmarks.problems.episodes.learner_spec import (
    AT_ONCE,
    LearnerSpec,
    validation,
)
from benchmarks.problems.episodes.learning import (
    ImageLearning,
    Learning,
    SineLearning,
)
from benchmarks.problems.prerequisite import Forecast, Prerequisite
from benchmarks.problems.pretrained.weights import Theta, device
from benchmarks.runs.spec import RunSpec
from metricopt.fewshot.episodes import Episodes
from metricopt.metrics.base import Metric


class EpisodesPipeline(Pipeline):
    """Episodes of a replicate with their learner; see `Pipeline`.

    A metric has a value for every episode to test. The split `observe` is the episodes
    that learners are validated on.
    """

    shares_columns = False
    settings: Learning

    def __init__(self, settings: Learning, replicate: int) -> None:
        super().__init__(settings, replicate)
        self.device = device()

    @cached_property
    def source(self) -> EpisodeSource:
        """All episodes."""
        return self.settings.source(self.replicate)

    @property
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""
        return self.source.data

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        own = self.learner_spec.seeds.seed("network")
        return super().recorded_seeds | {"network": own}

    @property
    def learner_spec(self) -> LearnerSpec:
        """What determines the learner."""
        return LearnerSpec(self.settings.trained(), self.replicate)

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """The meta-trained learner, if there is one."""
        if self.settings.learner is None:
            return []
        spec = self.learner_spec
        spec.check()
        return [spec]

    def forecast(self) -> Forecast | None:
        """Return what meta-training takes, without data."""
        return None if self.settings.learner is None else self.learner_spec.forecast()

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes of decoded images; see `Pipeline`."""
        return self.settings.decoded()

    @cached_property
    def theta(self) -> Theta:
        """The meta-trained learner."""
        return self.learner_spec.find()

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the meta-trained learner."""
        return {} if self.settings.learner is None else {"theta": self.theta.digest}

    def evaluate(
        self, choices: Sequence[Choice], split: str, metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice, a value for each episode.

        A choice with a course is not evaluated on `observe`: nothing is chosen by
        that, and the many inner steps would double the time of a run.
        """
        self.check_open(split)
        return [self._values(choice, split, metrics) for choice in choices]

    def _values(
        self, choice: Choice, split: str, metrics: Mapping[str, Metric]
    ) -> Values:
        assert isinstance(choice, OnEpisodes)
        if choice.course is not None and split != TEST:
            return {}
        values = {name: list[float]() for name in metrics}
        for episodes in self._batches(split):
            outputs = (choice.course or choice).outputs(episodes).cpu()
            pairs = [*zip(outputs, episodes.query_targets, strict=True)]
            for name, metric in metrics.items():
                values[name] += [metric.value(*pair) for pair in pairs]
        return {
            name: torch.tensor(own, dtype=torch.float64) for name, own in values.items()
        }

    def _batches(self, split: str) -> Iterator[Episodes]:
        if split == TEST:
            return self.source.tests(AT_ONCE)
        # No more than are tested, so that a smoke run stays short.
        most = self.settings.training.validated
        return validation(self.source, min(most, self.source.test_episodes))

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes of how a learner adapted to the episodes of its test."""
        assert isinstance(choice, OnEpisodes)
        self.check_open("test")
        return {} if choice.course is None else choice.course.notes()


@PIPELINES.register("few-shot-images")
class FewShotImages(EpisodesPipeline):
    """Classes of images from a few of them; see `EpisodesPipeline`."""

    settings_type = ImageLearning


@PIPELINES.register("sine-waves")
class SineWaves(EpisodesPipeline):
    """Sine waves from a few of their points; see `EpisodesPipeline`."""

    settings_type = SineLearning


def learner_of(spec: RunSpec) -> str:
    """Return a readable identity of the learner of a run."""
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    assert isinstance(pipeline, EpisodesPipeline)
    learner = pipeline.learner_spec
    return f"{learner.name} ({learner.digest[:8]})"

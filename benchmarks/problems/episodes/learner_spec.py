"""A meta-trained learner: found in the cache, among the released, or trained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean
from typing import Any, ClassVar

import torch
from torch.utils.flop_counter import FlopCounterMode

from baselines.learners.contract import LEARNERS, Learner
from benchmarks.data.few_shot.contract import TRAIN, VALIDATION
from benchmarks.problems.episodes.contract import EpisodeSource
from benchmarks.problems.episodes.learning import Learning
from benchmarks.problems.prerequisite import PASSES, Forecast
from benchmarks.problems.pretrained.kept_training import DIVERGED, KeptTraining
from benchmarks.problems.pretrained.weights import (
    Theta,
    assembled,
    device,
    kept,
)
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import changed
from benchmarks.runs.notes import META_PARAMETERS
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import DivergedError
from metricopt.fewshot.adaptation import query_outputs
from metricopt.fewshot.episodes import Episodes
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.fewshot.meta_training import meta_train
from metricopt.fewshot.settings import MetaTrained
from metricopt.process.seeding import Seeds

AT_ONCE = 20
"""Episodes that are made at a time."""
COURSE = 50
"""Most numbers that a record keeps of the losses of a meta-training."""


@dataclass(frozen=True)
class LearnerSpec(KeptTraining):
    """Everything that determines a meta-trained learner.

    Attributes:
        learning: episodes, network, training and learner.
        replicate: decides the split of classes, the first weights and the episodes.
    """

    learning: Learning
    replicate: int
    kind: ClassVar[str] = "learner"

    @property
    def _learner(self) -> Unit:
        assert self.learning.learner is not None
        return self.learning.learner

    @property
    def name(self) -> str:
        """Readable, and unique among what is released."""
        settings = sorted(self._learner.settings.items())
        changes = [f"{name}{value}" for name, value in settings]
        parts = [self.learning.label, self._learner.name, *changes]
        return "-".join([*parts, f"r{self.replicate}"])

    @property
    def seeds(self) -> Seeds:
        """Seeds of the first weights: all learners of a replicate start alike."""
        return Seeds("learner", self.learning.label, self.replicate)

    def fresh(self) -> MetaLearner:
        """Return the learner before its training.

        Raises:
            ConfigError: if there is no such learner or setting, or the network does not
                suit.
        """
        network = self.learning.fresh(self.seeds.seed("network"))
        generator = self.seeds.generator("geometry")
        return self.learner().make(network, self.learning.loss, generator)

    def learner(self) -> Learner:
        """Return the settings of the learner.

        Raises:
            ConfigError: if there is no such learner or setting.
        """
        kind = LEARNERS.get(self._learner.name)
        return changed(kind(), self._learner.settings)

    def check(self) -> None:
        """Check that the settings go together, without data.

        Raises:
            ConfigError: if they do not.
        """
        self.learner()
        self.learning.fresh(0)

    def find(self) -> Theta:
        """Return the learner, trained now if there is none.

        Raises:
            DataError: if released weights do not match their record.
            DivergedError: if it diverged.
        """
        learner, made = self.fresh(), self.kept()
        return assembled(learner, learner.loss, made, self.name, self.kind)

    def train(self, shown: Any = None) -> Artifact:
        """Train the learner, continuing from its checkpoint if there is one."""
        source, learner = self.learning.source(self.replicate), self.fresh()
        learner.to(device())
        score = partial(self.score, source=source)
        training = self.learning.training.training()
        try:
            trained = meta_train(
                learner,
                partial(source.batch, TRAIN),
                replace(training, geometry_rate=self.learner().geometry_rate),
                validate=score,
                checkpoint=self.checkpoints / "meta-training.pt",
                show=bool(shown),
            )
        except DivergedError as error:
            return Artifact({}, {DIVERGED: str(error)})
        facts = _facts(trained, learner)
        return kept(learner, learner.loss, lambda own: {"score": score(own)}, facts)

    def score(self, learner: MetaLearner, source: EpisodeSource) -> float:
        """Return how good a learner is on episodes to validate; higher is better."""
        metric = metric_of(Unit(self.learning.metric))
        values = [
            metric.value(outputs.cpu(), targets)
            for episodes in validation(source, self.learning.training.validated)
            for outputs, targets in zip(
                self.outputs(learner, episodes), episodes.query_targets, strict=True
            )
        ]
        return fmean(values) if metric.higher_is_better else -fmean(values)

    def outputs(
        self, learner: MetaLearner, episodes: Episodes, steps: int | None = None
    ) -> torch.Tensor:
        """Return the outputs of a learner on queries, after steps as in training."""
        found, batching = episodes.to(device()), self.learning.training.batching
        return query_outputs(learner, found, steps=steps, batching=batching)

    def make(self, *, quiet: bool = False) -> None:
        """Train it, with a bar of its iterations unless it is to be quiet."""
        self.trained_here(not quiet)

    def forecast(self) -> Forecast:
        """Return what the training takes, without data."""
        learner, learning = self.learner(), self.learning
        support, query = learning.examples
        # A gradient of a gradient costs as much more as a gradient of outputs does.
        order = PASSES if learner.order == "full" else 1
        passes = PASSES * (query + learner.steps * support * order)
        training = learning.training
        every = training.iterations * training.episodes
        return Forecast(self.digest, _operations(learning) * passes * every, 0)

    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""
        facts, path = self.trained_here().facts, self.write()
        return {
            "learner": self.name,
            "iterations": str(self.learning.training.iterations),
            "minutes": f"{float(str(facts['seconds'])) / 60:.1f}",
            "score on validation": f"{facts['score']:.4f}",
            "MB": f"{path.stat().st_size / 1e6:.2f}",
        }


def validation(source: EpisodeSource, count: int) -> Iterator[Episodes]:
    """Yield batches of so many episodes to validate."""
    for start in range(0, count, AT_ONCE):
        yield source.batch(VALIDATION, range(start, min(start + AT_ONCE, count)))


@cache
def _operations(learning: Learning) -> float:
    """Return the floating-point operations of the outputs of one example."""
    network = learning.fresh(0).to("meta")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, *learning.shape, device="meta"))
    return float(counter.get_total_flops())


def _facts(trained: MetaTrained, learner: MetaLearner) -> dict[str, object]:
    """Return what a record keeps of a meta-training."""
    every = -(-len(trained.losses) // COURSE)
    starts = range(0, len(trained.losses), every)
    means = (fmean(trained.losses[at : at + every]) for at in starts)
    return {
        "losses": [round(mean, 5) for mean in means],
        "validations": {str(k): round(v, 6) for k, v in trained.validations.items()},
        "kept": trained.kept,
        "skipped": len(trained.skipped),
        "largest_gradient_norm": round(max(trained.gradient_norms), 3),
        META_PARAMETERS: learner.size,
        "seconds": round(trained.seconds, 1),
    }

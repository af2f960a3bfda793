"""Retrieval: a pre-trained embedding network with FiLM on its last stage."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, make_embedding_loss
from baselines.training.batches import Batches
from baselines.training.optimization import Training
from benchmarks.data.listed.registry import find_listed
from benchmarks.networks.embedding.contract import EmbeddingNetwork
from benchmarks.problems.adapted import Splits
from benchmarks.problems.choices import Adapted, Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.forecast import Forecast, ImageCost, cost_of_image
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.retrieval.pictured import pictured
from benchmarks.problems.retrieval.problem import RetrievalSplits, load_problem
from benchmarks.problems.retrieval.settings import RetrievalSettings
from benchmarks.problems.retrieval.theta import (
    EmbeddingSpec,
    EmbeddingTheta,
    batches_of,
    find_theta,
    fresh,
    training_of,
    unloaded,
)
from benchmarks.runs.codec import changed
from metricopt.adapters.film import FiLM
from metricopt.losses.contract import Loss
from metricopt.losses.portfolio import Portfolio
from metricopt.tasks.class_sampling import ClassSampler
from metricopt.tasks.encoding import Encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge


@PIPELINES.register("retrieval")
class RetrievalPipeline(PretrainedPipeline):
    """A retrieval problem with its network; see `Pipeline`.

    Every image of a part is a query among all others of that part. Fine-tuning sees
    all training images without augmentation: what comes before the adapter is then
    computed once.
    """

    settings_type = RetrievalSettings
    settings: RetrievalSettings
    examples_at_once = 128

    @cached_property
    def problem(self) -> RetrievalSplits:
        """All images of the problem."""
        return load_problem(self.settings.problem, self.replicate)

    @cached_property
    def splits(self) -> Splits:
        """The three splits."""
        problem = self.problem
        return Splits(
            problem.train.to(self.device),
            problem.observe.to(self.device),
            problem.test.to(self.device),
            problem.variant,
            problem.digest,
        )

    @property
    def theta_spec(self) -> EmbeddingSpec:
        """Which network theta is."""
        settings = self.settings
        return EmbeddingSpec(settings.problem, settings.backbone, self.replicate)

    def forecast(self) -> Forecast:
        """Return what its network takes, without data."""
        problem, training = self.settings.problem, self.settings.backbone.training
        images, rows, *_ = find_listed(problem.dataset).expected
        learned = round((1 - problem.observed) * images)
        cost = _cost(replace(self.theta_spec, replicate=0), self.settings.adapter)
        return cost.of_all(
            self.theta_spec.digest, trained=training.epochs * learned, kept=rows
        )

    @cached_property
    def pretrained(self) -> EmbeddingTheta:
        """The pre-trained network with its loss."""
        return find_theta(self.theta_spec, self.problem.classes)

    @property
    def theta(self) -> EmbeddingNetwork:
        """The pre-trained network, in evaluation mode."""
        return self.pretrained.network

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning uses as well."""
        return self.pretrained.loss

    @property
    def own_losses(self) -> Portfolio:
        """All registered losses that learn nothing of their own."""
        backbone = self.settings.backbone
        found = {
            name: make_embedding_loss(
                name, classes=self.problem.classes, size=backbone.size
            )
            for name in EMBEDDING_LOSSES
        }
        return {
            name: loss for name, loss in found.items() if not list(loss.parameters())
        }

    @property
    def sampler(self) -> ClassSampler:
        """What draws the mini-batches of fine-tuning."""
        targets = self.splits.train.targets
        assert isinstance(targets, Tensor)
        return ClassSampler(
            targets.cpu(), self.settings.batch_size, self.settings.per_class
        )

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the augmented mini-batches a network is trained on."""
        recipe = changed(self.settings.backbone.training, changes)
        return batches_of(self.problem, recipe)

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""
        return training_of(changed(self.settings.backbone.training, changes))

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with the base weights."""
        return self.theta if from_theta else fresh(self.theta_spec).to(self.device)

    @property
    def theta_digest(self) -> str:
        """Digest of all weights."""
        return self.pretrained.digest

    @cached_property
    def adapter(self) -> FiLM:
        """FiLM at the sites the settings name, by default those of the last stage."""
        return self.settings.adapter.film(
            self.theta,
            self.splits.observe.batch(slice(8)),
            seed=self.seeds.seed("adapter"),
            usual=self.theta.sites,
        )

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with queries and their nearest images, before and after."""
        assert isinstance(choice, Adapted)
        judge = Judge(self.adapter, self.encoded("test"))
        both = torch.cat([torch.zeros(1, self.adapter.size), choice.phi[:1]])
        outputs = judge.outputs(both)
        assert isinstance(outputs, Tensor)
        images = self.splits.test
        assert isinstance(images, Photographs)
        return dict(pictured(images, *outputs))

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it, kept on disk for other runs."""
        return self.kept(self.adapter, name, examples)


@cache
def _cost(spec: EmbeddingSpec, adapter: FilmSettings) -> ImageCost:
    network = unloaded(spec)
    image = torch.zeros(1, 3, spec.problem.side, spec.problem.side)
    return cost_of_image(network, image, adapter, *network.sites)

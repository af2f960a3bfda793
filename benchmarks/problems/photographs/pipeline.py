"""Photographs of classes: a pre-trained network with FiLM on its last feature map."""

import copy
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.loop import TrainingRun, train
from baselines.training.optimization import Training
from benchmarks.problems.adapted import Splits
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.film_settings import FilmSettings, shared_seed
from benchmarks.problems.forecast import Forecast, ImageCost, cost_of_image
from benchmarks.problems.photographs.problem import (
    PhotographSplits,
    counted,
    load_problem,
)
from benchmarks.problems.photographs.settings import ImagenetSettings
from benchmarks.problems.photographs.theta import (
    ClassifierSpec,
    ClassifierTheta,
    batches_of,
    find_theta,
    fresh,
    pooled_map,
    training_of,
)
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.runs.codec import changed
from metricopt.adapters.applied.changed import LACKING
from metricopt.adapters.export import state_digest
from metricopt.adapters.film import FiLM
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.losses.contract import Loss
from metricopt.metrics.confusion import class_shares
from metricopt.tasks.encoding import Encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import NaturalSampler


@PIPELINES.register("imagenet")
class ImagenetPipeline(PretrainedPipeline):
    """A problem of photographs with its network; see `Pipeline`.

    Fine-tuning sees `examples` training images without augmentation: what comes before
    the adapter is then computed once. The generator of FiLM is drawn by replicate
    alone, so that networks share it; see `FiLM`.
    """

    settings_type = ImagenetSettings
    settings: ImagenetSettings
    examples_at_once = 128

    @cached_property
    def problem(self) -> PhotographSplits:
        """All images of the problem."""
        return load_problem(self.settings.problem, self.replicate)

    @cached_property
    def splits(self) -> Splits:
        """The three splits; train is cut to what is used of it."""
        problem = self.problem
        return Splits(
            problem.train.first(self.settings.examples).to(self.device),
            problem.observe.to(self.device),
            problem.test.to(self.device),
            problem.variant,
            problem.digest,
        )

    @property
    def theta_spec(self) -> ClassifierSpec:
        """Which network theta is."""
        settings = self.settings
        return ClassifierSpec(settings.problem, settings.backbone, self.replicate)

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        return super().recorded_seeds | {"adapter": shared_seed(self.replicate)}

    def forecast(self) -> Forecast:
        """Return what its network takes, without data."""
        settings, problem = self.settings, self.settings.problem
        train, test, _ = counted(problem)
        learned = train - problem.observed
        kept = min(learned, settings.examples or learned)
        cost = _cost(replace(self.theta_spec, replicate=0), settings.adapter)
        return cost.of_all(
            self.theta_spec.digest,
            trained=settings.backbone.training.epochs * learned,
            kept=kept + problem.observed + test,
        )

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the images theta was trained on."""
        return class_shares(self.problem.train.targets, self.problem.classes)

    @cached_property
    def pretrained(self) -> ClassifierTheta:
        """The pre-trained network."""
        return find_theta(self.theta_spec)

    @property
    def theta(self) -> nn.Sequential:
        """The pre-trained network, in evaluation mode."""
        return self.pretrained.network

    @property
    def theta_digest(self) -> str:
        """Digest of all weights."""
        return self.pretrained.digest

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning uses as well."""
        return nn.CrossEntropyLoss()

    @property
    def sampler(self) -> NaturalSampler:
        """What draws the mini-batches of fine-tuning."""
        return NaturalSampler(len(self.splits.train), self.settings.batch_size)

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the augmented mini-batches a network is trained on."""
        recipe = changed(self.settings.backbone.training, changes)
        return batches_of(self.problem, recipe)

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""
        return training_of(changed(self.settings.backbone.training, changes))

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with random weights."""
        return self.theta if from_theta else fresh(self.theta_spec).to(self.device)

    def continued(
        self, phi: Tensor, changes: Mapping[str, Any], *, generator: torch.Generator
    ) -> "ImagenetPipeline":
        """Return the same problem with a network that was trained on, with phi in it.

        FiLM alone is in it while it is trained: offsets would be lost in its bias.
        """
        network = copy.deepcopy(self.theta)
        with (
            self._film_of(network).attach(phi.to(self.device)),
            warnings.catch_warnings(),
        ):
            # The weights alone are wanted, and kept while training goes on.
            warnings.filterwarnings("ignore", re.escape(LACKING))
            run = TrainingRun(
                network.requires_grad_(True),
                self.loss,
                self.batches(changes),
                self.training(changes),
                generator=generator,
            )
            train(run)
        moved = ImagenetPipeline(self.settings, self.replicate)
        moved.problem, moved._sealed = self.problem, True
        digest = state_digest(network.state_dict())
        moved.pretrained = ClassifierTheta(network.eval(), digest)
        return moved

    @cached_property
    def film(self) -> FiLM:
        """FiLM at the sites the settings name, by default the last feature map."""
        return self._film_of(self.theta)

    def _film_of(self, network: nn.Sequential) -> FiLM:
        return self.settings.adapter.film(
            network,
            self._example,
            seed=shared_seed(self.replicate),
            usual=(pooled_map(network),),
        )

    @cached_property
    def adapter(self) -> NetworkAdapter:
        """FiLM, with output offsets beside it where the settings want them."""
        wanted = self.settings.adapter.offsets
        return OutputOffsets(self.film, self._example) if wanted else self.film

    @property
    def _example(self) -> Tensor:
        return self.splits.observe.batch(slice(8))

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it, kept on disk for other runs."""
        return self.kept(self.film, name, examples)


@cache
def _cost(spec: ClassifierSpec, adapter: FilmSettings) -> ImageCost:
    network = fresh(spec).eval()
    image = torch.zeros(1, 3, spec.problem.side, spec.problem.side)
    return cost_of_image(network, image, adapter, pooled_map(network))

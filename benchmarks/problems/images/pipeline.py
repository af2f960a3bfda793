"""Images: a pre-trained convolutional network with FiLM."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches, PermutedBatches
from baselines.training.optimization import Training
from benchmarks.data.registry import variant_shape
from benchmarks.problems.adapted import AdaptedPipeline, Splits
from benchmarks.problems.choices import NetworkCost
from benchmarks.problems.contract import PIPELINES, Prerequisite
from benchmarks.problems.device import device
from benchmarks.problems.film_settings import FilmSettings, shared_seed
from benchmarks.problems.forecast import Forecast, ImageCost, cost_of_image
from benchmarks.problems.images.problem import ImageSplits, load_problem
from benchmarks.problems.images.settings import ImageSettings
from benchmarks.problems.images.theta import (
    Theta,
    ThetaSpec,
    find_theta,
    fresh,
    make_theta_loss,
    training_of,
)
from benchmarks.problems.pretrained.network import PretrainedNetwork
from benchmarks.runs.codec import changed
from benchmarks.runs.metrics import metric_of
from benchmarks.runs.spec import Unit
from metricopt.adapters.film import FiLM
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.losses.contract import Loss, check_batch_size, properties
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import class_shares
from metricopt.metrics.wrapped import WrappedMetric
from metricopt.process.seeding import Seeds
from metricopt.tasks.encoding import Encoded, encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Sampler


@PIPELINES.register("images")
class ImagePipeline(AdaptedPipeline):
    """An image problem with its network; see `Pipeline`.

    Fine-tuning takes its gradients on `finetune.examples` training images, without
    augmentation: what comes before the adapter is then computed once.
    """

    settings_type = ImageSettings
    settings: ImageSettings
    shares_columns = False
    examples_at_once = 500

    def __init__(self, settings: ImageSettings, replicate: int) -> None:
        super().__init__(settings, replicate)
        self.device = device()

    @cached_property
    def problem(self) -> ImageSplits:
        """All images of the problem."""
        return load_problem(self.settings.problem, self.replicate)

    @cached_property
    def splits(self) -> Splits:
        """The three splits; train and observe are cut to what is used of them."""
        problem, used = self.problem, self.settings.finetune.examples
        return Splits(
            problem.train.first(used).to(self.device),
            problem.observe.first(self.settings.observed).to(self.device),
            problem.test.to(self.device),
            problem.variant,
            problem.digest,
        )

    @property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        return Seeds(self.theta_spec.name, self.settings.sampling, self.replicate)

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        own = {"theta": self.theta_spec.seed, "adapter": self._adapter_seed}
        return super().recorded_seeds | own

    @property
    def _adapter_seed(self) -> int:
        shared = self.settings.adapter.form == "shared"
        return shared_seed(self.replicate) if shared else self.seeds.seed("adapter")

    @property
    def theta_spec(self) -> ThetaSpec:
        """Which network theta is."""
        return ThetaSpec(self.settings.problem, self.settings.backbone, self.replicate)

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """The pre-trained network, after the one it continues from.

        Raises:
            ConfigError: if mini-batches of fine-tuning are too small for its loss.
        """
        self._check_batches()
        needed = (self.theta_spec.start, self.theta_spec)
        return [PretrainedNetwork(spec) for spec in needed if spec is not None]

    def forecast(self) -> Forecast:
        """Return what its network takes at most, without data."""
        settings, problem = self.settings, self.settings.problem
        rows, *_ = variant_shape(problem.dataset, problem.variant)
        cost = _cost(replace(self.theta_spec, replicate=0), settings.adapter)
        return cost.of_all(
            self.theta_spec.digest,
            trained=settings.backbone.pretraining.epochs * rows,
            kept=rows,
        )

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the images theta was trained on."""
        return class_shares(self.problem.train.targets, self.problem.classes)

    @cached_property
    def pretrained(self) -> Theta:
        """The pre-trained network with its loss."""
        self._check_batches()
        return find_theta(self.theta_spec)

    def _check_batches(self) -> None:
        backbone, size = self.settings.backbone, self.settings.finetune.batch_size
        check_batch_size(make_theta_loss(backbone), size, backbone.classes)

    @property
    def theta(self) -> nn.Sequential:
        """The pre-trained network, in evaluation mode."""
        return self.pretrained.network

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning uses as well."""
        if self.settings.backbone.loss == "cross-entropy":
            return nn.CrossEntropyLoss()  # the same, for all rows of phi at once
        return self.pretrained.loss

    @property
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""
        targets = self.splits.train.targets.cpu()
        size = self.settings.finetune.batch_size
        if self.settings.sampling == "balanced":
            return BalancedSampler(targets, size)
        return NaturalSampler(len(targets), size)

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the augmented mini-batches a network is trained on."""
        recipe = changed(self.settings.backbone.pretraining, changes)
        return PermutedBatches(self.problem.train.to(self.device), recipe.batch_size)

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""
        return training_of(changed(self.settings.backbone.pretraining, changes))

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with random weights."""
        return self.theta if from_theta else fresh(self.theta_spec)[0].to(self.device)

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline: of this very network."""
        return super().key | {"theta": self.pretrained.digest}

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the pre-trained network."""
        return {"theta": self.pretrained.digest}

    @property
    def network_cost(self) -> NetworkCost:
        """What a method took to train the network."""
        return self.pretrained.cost

    @cached_property
    def film(self) -> FiLM:
        """FiLM at the sites the settings name, by default the last normalisation."""
        return self.settings.adapter.film(
            self.theta, self._example, seed=self._adapter_seed, usual=()
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
        if not self.film.is_cut:
            return encoded(self.adapter, examples)  # the images themselves
        return self.kept(self.film, name, examples)

    def class_outputs(self, outputs: Tensor) -> Tensor:
        """Return the outputs that say a class, [..., C]."""
        return outputs[..., : self.problem.classes]

    def metric(self, unit: Unit) -> Metric:
        """Return the metric on the class logits, which may not be all outputs.

        If the loss trains every output by itself, AUCPR ranks by raw outputs.
        """
        loss = properties(self.loss)
        if unit == Unit("aucpr") and loss.independent:
            unit = Unit("aucpr-macro-logits")
        metric = metric_of(unit)
        if loss.outputs_per_class == 1:
            return metric
        return OnLogits(metric, self.problem.classes)


@cache
def _cost(spec: ThetaSpec, adapter: FilmSettings) -> ImageCost:
    problem = spec.problem
    _, *sides = variant_shape(problem.dataset, problem.variant)
    # Bytes have their channels last, other values first; see `problem.as_bytes`.
    channels = min(sides)
    high = wide = max(sides)
    network, _ = fresh(spec)
    return cost_of_image(network.eval(), torch.zeros(1, channels, high, wide), adapter)


class OnLogits(WrappedMetric):
    """A metric of the first C outputs: the others are there for the loss alone.

    Args:
        metric: what is evaluated.
        classes: number of classes C.
    """

    def __init__(self, metric: Metric, classes: int) -> None:
        super().__init__(metric)
        self.classes = classes

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return self.metric.value(outputs[:, : self.classes], targets)

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.metric.values(outputs[..., : self.classes], targets)

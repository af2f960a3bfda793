"""What determines theta of images, and how it is trained."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from baselines.losses.contract import make_loss
from baselines.losses.large_margin import MarginHead
from baselines.training.batches import Batches
from baselines.training.loop import OnEpoch
from benchmarks.data.registry import variant_shape
from benchmarks.networks.contract import build_network
from benchmarks.problems.images.course import ImageMethodTraining
from benchmarks.problems.images.images import Images, load_splits
from benchmarks.problems.images.settings import (
    ImageBackbone,
    ImageProblem,
    ImageTraining,
)
from benchmarks.problems.images.tiers import CROSS_ENTROPY
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact
from metricopt.losses.contract import Loss, check_batch_size, properties
from metricopt.process.seeding import Seeds


class ImageThetaSpec(ThetaSpec):
    """Images, the network with what it goes on from, and the replicate."""

    kind = "image-theta"
    load = staticmethod(load_splits)
    at_once = 500
    course = ImageMethodTraining
    recipe_field = "pretraining"
    problem: ImageProblem
    backbone: ImageBackbone

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        parts = [self.problem.dataset]
        if self.problem.imbalance > 1:
            parts.append(f"tail{self.problem.imbalance}")
        if self.problem.label_noise:
            parts.append(f"noise{round(100 * self.problem.label_noise)}")
        if self.problem.max_examples is not None:
            parts.append(f"first{self.problem.max_examples}")
        parts += [self.backbone.network, self.trained_with]
        if self.warm and self.warm[0].backbone.loss == parts[-1]:
            parts.append("longer")
        return "-".join([*parts, f"r{self.replicate}"])

    @property
    def seeds(self) -> Seeds:
        """Seeds of its training: a method begins where cross-entropy would."""
        if self.taught is None:
            return super().seeds
        alone = replace(self.backbone, taught=None, loss=CROSS_ENTROPY)
        return Seeds(replace(self, backbone=alone).name)

    @property
    def warm(self) -> Sequence["ImageThetaSpec"]:
        """The network that this one goes on from; empty if from random weights."""
        start = self.backbone.start
        return [] if start is None else [replace(self, backbone=start)]

    def fresh(self) -> nn.Sequential:
        """Return the network with random weights."""
        doubled = properties(self.loss()).outputs_per_class == 2

        def head(features: int) -> nn.Module:
            return (MarginHead if doubled else nn.Linear)(features, self.classes)

        return build_network(self.backbone.network, head, self.seed)

    def loss(self) -> Loss:
        """Return the loss, with nothing learned yet."""
        backbone = self.backbone
        return make_loss(backbone.loss, classes=self.classes, **backbone.loss_settings)

    def image(self) -> Tensor:
        """Return an input of the network, to measure its cost."""
        _, *sides = variant_shape(self.problem.dataset, self.problem.variant)
        # Bytes have their channels last, other values first; see `splits.as_bytes`.
        return torch.zeros(1, min(sides), max(sides), max(sides))

    def augmented(self, train: Images, recipe: ImageTraining) -> Images:
        """Return training images with the crops of a recipe."""
        return train if recipe.shift is None else train.shifted(recipe.shift)

    def start(self, splits: Splits) -> nn.Sequential:
        """Return the network with random weights, or with those it goes on from."""
        network = self.fresh()
        for spec in self.warm:
            network.load_state_dict(spec.find().network.state_dict())
        return network

    def _train(
        self,
        network: nn.Module,
        batches: Batches,
        observe: Images,
        on_epoch: OnEpoch | None,
    ) -> Artifact:
        check_batch_size(self.loss(), batches.batch_size, self.classes)
        return super()._train(network, batches, observe, on_epoch)

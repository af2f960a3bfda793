"""Detection: a pre-trained detector with FiLM on its box head."""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from baselines.detection_losses.blackbox_ap import DetectionAP
from baselines.training.batches import Batches, SampledBatches
from baselines.training.optimization import Training
from benchmarks.data.detection.contract import DETECTION
from benchmarks.problems.adapted import Splits
from benchmarks.problems.choices import Adapted, Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.detection.pictured import pictured
from benchmarks.problems.detection.problem import DetectionSplits, load_problem
from benchmarks.problems.detection.settings import DetectionSettings
from benchmarks.problems.detection.theta import (
    DetectorSpec,
    DetectorTheta,
    find_theta,
    fresh,
    training_of,
    unloaded,
)
from benchmarks.problems.forecast import Forecast, ImageCost, cost_of_image
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.record import PROPOSAL_RECALL
from metricopt.adapters.film import FiLM
from metricopt.detection.head import Regions
from metricopt.losses.contract import Loss
from metricopt.losses.detection import DetectionLoss
from metricopt.losses.portfolio import Portfolio
from metricopt.tasks.encoding import Encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge
from metricopt.tasks.sampling import NaturalSampler

SIDE = 500
"""Pixels of a side of the image that a forecast is made with."""


@PIPELINES.register("detection")
class DetectionPipeline(PretrainedPipeline):
    """A detection problem with its detector; see `Pipeline`.

    Proposals and what is pooled from them do not depend on the adapter: they are
    computed once, and the network of this pipeline is the box head alone. Methods that
    train a network train the box head. Fine-tuning sees all training images without
    augmentation.
    """

    settings_type = DetectionSettings
    settings: DetectionSettings
    examples_at_once = 16

    @cached_property
    def problem(self) -> DetectionSplits:
        """All images of the problem, with their objects."""
        return load_problem(self.settings.problem, self.replicate)

    @cached_property
    def splits(self) -> Splits:
        """The three splits, as regions."""
        problem = self.problem
        parts = (problem.train, problem.observe, problem.test)
        train, observe, test = (
            Regions(self.head, part.to(self.device), targets=part.targets)
            for part in parts
        )
        return Splits(train, observe, test, problem.variant, problem.digest)

    @property
    def theta_spec(self) -> DetectorSpec:
        """Which detector theta is."""
        settings = self.settings
        return DetectorSpec(settings.problem, settings.backbone, self.replicate)

    def forecast(self) -> Forecast:
        """Return what its detector takes, without data."""
        settings, source = self.settings, DETECTION.get(self.settings.problem.dataset)
        learned = round((1 - settings.problem.observed) * source.expected[0])
        cost = _cost(settings, len(source.classes))
        return cost.of_all(
            self.theta_spec.digest,
            trained=settings.backbone.training.epochs * learned,
            kept=sum(source.expected),
        )

    @cached_property
    def pretrained(self) -> DetectorTheta:
        """The pre-trained detector with its loss."""
        return find_theta(self.theta_spec, len(self.problem.classes))

    @cached_property
    def head(self) -> Any:
        """The box head of the pre-trained detector."""
        return self.pretrained.detector.head(self.settings.proposals)

    @property
    def loss(self) -> Loss:
        """The loss of the regions, which fine-tuning uses as well."""
        return self.pretrained.loss

    @property
    def own_losses(self) -> Portfolio:
        """Both losses of regions, whichever the detector was trained with."""
        return {"cross-entropy": DetectionLoss(), "ap": DetectionAP()}

    @property
    def sampler(self) -> NaturalSampler:
        """What draws the mini-batches of fine-tuning."""
        return NaturalSampler(len(self.splits.train), self.settings.batch_size)

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches of regions a box head is trained on."""
        recipe = changed(self.settings.backbone.training, changes)
        return SampledBatches(self.splits.train, recipe.batch_size)

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a box head is trained here, with changes."""
        return training_of(changed(self.settings.backbone.training, changes))

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained box head, or one with random weights."""
        if from_theta:
            return self.head
        begun = fresh(self.theta_spec, len(self.problem.classes)).to(self.device)
        head: nn.Module = begun.head(self.settings.proposals)
        return head

    @property
    def theta_digest(self) -> str:
        """Digest of all weights."""
        return self.pretrained.digest

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the pre-trained detector."""
        own = {
            "back end": self.pretrained.detector.back_end,
            PROPOSAL_RECALL: self.pretrained.proposal_recall,
        }
        return super().network_data | own

    @cached_property
    def adapter(self) -> FiLM:
        """FiLM at the sites the settings name, by default all layers of the head."""
        return self.settings.adapter.film(
            self.head,
            self.splits.observe.batch(slice(4)),
            seed=self.seeds.seed("adapter"),
            usual=self.head.sites,
        )

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with detections on the same images, before and after."""
        assert isinstance(choice, Adapted)
        judge = Judge(self.adapter, self.encoded("test"))
        both = torch.cat([torch.zeros(1, self.adapter.size), choice.phi[:1]])
        outputs = judge.outputs(both)
        assert isinstance(outputs, Tensor)
        problem = self.problem
        return dict(pictured(problem.test, problem.classes, *outputs))

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it, kept on disk for other runs."""
        return self.kept(
            self.adapter, name, examples, proposals=self.settings.proposals
        )


@cache
def _cost(settings: DetectionSettings, classes: int) -> ImageCost:
    spec = DetectorSpec(settings.problem, settings.backbone, 0)
    head: Any = unloaded(spec, classes).head(settings.proposals)
    with FlopCounterMode(display=False) as counter:
        regions = head.regions([torch.zeros(3, SIDE, SIDE)])
    of_head = cost_of_image(head, regions, settings.adapter, *head.sites)
    before = counter.get_total_flops()
    return ImageCost(of_head.operations + before, of_head.feature_bytes)

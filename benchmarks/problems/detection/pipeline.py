"""Detection: theta is the box head of a detector, with FiLM on it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from baselines.detection_losses.blackbox_ap import DetectionAP
from baselines.training.batches import Batches, SampledBatches
from benchmarks.data.detection.contract import DETECTION
from benchmarks.problems.choices import Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.detection.pictured import pictured
from benchmarks.problems.detection.settings import DetectionSettings
from benchmarks.problems.detection.theta import RECALL, DetectionThetaSpec
from benchmarks.problems.forecast import ImageCost, cost_of_image
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.splits import Splits
from benchmarks.runs.record import PROPOSAL_RECALL
from metricopt.detection.head import Regions
from metricopt.losses.detection import DetectionLoss
from metricopt.losses.portfolio import Portfolio

SIDE = 500
"""Pixels of a side of the image that a forecast is made with."""


@PIPELINES.register("detection")
class DetectionPipeline(PretrainedPipeline):
    """A detection problem with its detector; see `Pipeline`.

    Proposals and what is pooled from them do not depend on the adapter: they are
    computed once, and theta is the box head alone. Methods that train a network train
    the box head.
    """

    settings_type = DetectionSettings
    settings: DetectionSettings
    spec_type = DetectionThetaSpec

    @cached_property
    def splits(self) -> Splits:
        """The three splits, as regions."""
        whole = self.whole
        parts = {
            name: Regions(self.theta, part.to(self.device), targets=part.targets)
            for name, part in whole.parts.items()
        }
        return replace(whole, **parts)

    @property
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""
        problem = self.settings.problem
        expected = DETECTION.get(problem.dataset).expected
        return round((1 - problem.observed) * expected[0]), sum(expected)

    @property
    def image_cost(self) -> ImageCost:
        """What one image costs."""
        return _image_cost(self.settings)

    @cached_property
    def theta(self) -> Any:
        """The box head of the pre-trained detector."""
        return self.pretrained.network.head(self.settings.proposals)

    @property
    def own_losses(self) -> Portfolio:
        """Both losses of regions, whichever the detector was trained with."""
        return {"cross-entropy": DetectionLoss(), "ap": DetectionAP()}

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches of regions a box head is trained on."""
        return SampledBatches(self.splits.train, self.recipe(changes).batch_size)

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained box head, or one with random weights."""
        start = super().network_start(from_theta=from_theta)
        return start if from_theta else start.head(self.settings.proposals)

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the pre-trained detector."""
        recall = float(self.pretrained.facts[RECALL])
        own = {
            "back end": self.pretrained.network.back_end,
            PROPOSAL_RECALL: f"{recall:.4f}",
        }
        return super().network_data | own

    @property
    def features_facts(self) -> Mapping[str, object]:
        """Number of proposals, which features depend on, too."""
        return {"proposals": self.settings.proposals}

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with detections on the same images, before and after."""
        classes = DETECTION.get(self.settings.problem.dataset).classes
        both = self.before_and_after(choice)
        return dict(pictured(self.whole.test, classes, *both))


@cache
def _image_cost(settings: DetectionSettings) -> ImageCost:
    spec = DetectionThetaSpec(settings.problem, settings.backbone, 0)
    head: Any = spec.fresh().head(settings.proposals)
    with FlopCounterMode(display=False) as counter:
        regions = head.regions([torch.zeros(3, SIDE, SIDE)])
    of_head = cost_of_image(head, regions, settings.adapter, *head.sites)
    before = counter.get_total_flops()
    return ImageCost(of_head.operations + before, of_head.feature_bytes)

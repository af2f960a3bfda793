"""What determines theta of detection, and how it is trained."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from baselines.detection_losses.blackbox_ap import DetectionAP
from benchmarks.data.detection.contract import DETECTION
from benchmarks.networks.detection.contract import Detector, build_detector
from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.detection.settings import (
    DetectionProblem,
    DetectorBackbone,
    DetectorTraining,
)
from benchmarks.problems.detection.splits import load_splits
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import predicted
from benchmarks.runs.record import PROPOSAL_RECALL
from benchmarks.runs.spec import Unit, metric_of
from metricopt.detection.head import Regions
from metricopt.detection.matching import intersection_over_union
from metricopt.detection.packed import counted, region_outputs
from metricopt.losses.contract import Loss
from metricopt.losses.detection import DetectionLoss

CHECKED = "ap50"
"""Metric of a detector on observe, as its record tells it."""
JUDGED = 100
"""Proposals of an image that a training's record is judged by."""
FOUND = 0.5
"""Overlap from which a proposal is one of an object."""
RECALL = "observe_proposal_recall"
"""Name of the fact how many objects of observe a proposal overlaps."""


class DetectionThetaSpec(ThetaSpec):
    """Images, the detector with its base weights, and the replicate."""

    kind = "detector-theta"
    load = staticmethod(load_splits)
    told: ClassVar[Mapping[str, str]] = {
        f"{CHECKED} on observe": "observe_ap50",
        f"{PROPOSAL_RECALL} at {JUDGED}": RECALL,
    }
    at_once = 16
    problem: DetectionProblem
    backbone: DetectorBackbone

    @property
    def classes(self) -> int:
        """Number of classes, without the background."""
        return len(DETECTION.get(self.problem.dataset).classes)

    def fresh(self) -> Detector:
        """Return the detector with random weights."""
        return build_detector(self.backbone.network, self.classes, self.seed)

    def trunk(self, network: Detector) -> nn.Module:
        """Return the part of a detector that base weights are for."""
        return network.trunk

    def loss(self) -> Loss:
        """Return the loss of regions that its box head is fine-tuned with."""
        return DetectionAP() if self.backbone.loss == "ap" else DetectionLoss()

    def training_loss(self) -> Loss:
        """Return the loss of sampled regions."""
        return SampledRegionLoss(self.backbone)

    def augmented(self, train: Scenes, recipe: DetectorTraining) -> Scenes:
        """Return the training images with mirrored ones, or flipped ones, too."""
        return train.flipped(upside_down=recipe.upside_down)

    def judge(self, network: nn.Module, observe: Scenes) -> dict[str, float]:
        """Return average precision and recall of proposals on observe."""
        assert isinstance(network, Detector)
        head: Any = network.head(JUDGED)
        regions = Regions(head, observe, targets=observe.targets)
        outputs = predicted(head, regions, self.at_once)
        return {
            "observe_ap50": metric_of(Unit(CHECKED)).value(outputs, observe.targets),
            RECALL: proposal_recall(outputs, observe.targets),
        }


class SampledRegionLoss(nn.Module):
    """Loss of a detector in training: of the classes of sampled regions, and the rest.

    Args:
        backbone: which loss of the classes, and the share of cross-entropy beside it.

    Source: Ren et al., NeurIPS 2015; Rolinek et al., CVPR 2020, Sec. 5.3. Differs: AP
    ranks the classes without the background, so that some cross-entropy stands beside
    it, which tells the background from them.
    """

    def __init__(self, backbone: DetectorBackbone) -> None:
        super().__init__()
        self._ap = DetectionAP() if backbone.loss == "ap" else None
        self._share = backbone.training.cross_entropy if self._ap else 1.0

    def forward(self, sampled: tuple[Tensor, Tensor, Tensor], targets: Any) -> Tensor:
        """Return the loss of regions as `Detector.forward` samples them, a scalar."""
        logits, labels, others = sampled
        labels = labels.long()
        loss = others + self._share * cross_entropy(logits, labels)
        if self._ap is not None:
            everywhere = torch.ones_like(labels, dtype=torch.bool)
            loss = loss + self._ap.of_classes(
                logits[None], labels[None], everywhere[None]
            )
        return loss.sum()


def proposal_recall(outputs: Tensor, truths: Tensor) -> float:
    """Return the share of objects that a proposal overlaps by more than half.

    Args:
        outputs: packed outputs of the regions of N images, [N, P, 5 C + 6].
        truths: their objects, shape [N, G, 6]; difficult ones do not count.
    """
    found, objects = region_outputs(outputs), counted(truths)
    overlaps = intersection_over_union(found.proposals, truths[..., :4])
    near = (overlaps > FOUND) & found.present[..., None]
    return int((near.any(1) & objects).sum()) / max(int(objects.sum()), 1)

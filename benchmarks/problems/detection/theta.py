"""Pre-trained detectors: what determines one, and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from baselines.detection_losses.blackbox_ap import DetectionAP
from baselines.training.batches import PermutedBatches
from baselines.training.loop import OnEpoch, TrainingRun
from baselines.training.optimization import Training
from benchmarks.networks.detection.contract import Detector, build_detector
from benchmarks.problems.detection.problem import load_problem
from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.detection.settings import (
    DetectionProblem,
    DetectorBackbone,
    DetectorTraining,
)
from benchmarks.problems.device import device
from benchmarks.problems.pretrained.base_weights import load_base
from benchmarks.problems.pretrained.theta import (
    PretrainedSpec,
    find_artifact,
    freeze,
    give,
    predicted,
    train_artifact,
)
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.metrics import metric_of
from benchmarks.runs.paths import data_root
from benchmarks.runs.record import PROPOSAL_RECALL
from benchmarks.runs.spec import Unit
from metricopt.detection.head import Regions
from metricopt.detection.matching import intersection_over_union
from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import counted
from metricopt.losses.contract import Loss
from metricopt.losses.detection import DetectionLoss

CHECKED = "ap50"
"""Metric of a detector on observe, as its record tells it."""
JUDGED = 100
"""Proposals of an image that a training's record is judged by."""
FOUND = 0.5
"""Overlap from which a proposal is one of an object."""
AT_ONCE = 16


@dataclass(frozen=True)
class DetectorSpec(PretrainedSpec):
    """Everything that determines a pre-trained detector.

    Attributes:
        problem: the images.
        backbone: detector, base weights, loss and training.
        replicate: decides splits and seeds.
    """

    kind = "detector-theta"
    problem: DetectionProblem
    backbone: DetectorBackbone
    replicate: int

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        backbone = self.backbone
        named = (self.problem.dataset, backbone.network, backbone.loss)
        return "-".join([*named, f"r{self.replicate}"])

    @property
    def epochs(self) -> int:
        """Length of its training."""
        return self.backbone.training.epochs

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the detector; see `train_detector`."""
        return train_detector(self, on_epoch)

    def told(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """Return its average precision and the recall of its proposals on observe."""
        return {
            f"{CHECKED} on observe": f"{float(facts['observe_ap50']):.4f}",
            f"{PROPOSAL_RECALL} at {JUDGED}": _recall(facts),
        }


@dataclass(frozen=True, eq=False)
class DetectorTheta:
    """A pre-trained detector with the loss its box head is fine-tuned with.

    Attributes:
        detector: in evaluation mode.
        loss: of regions; of the kind the detector was trained with.
        digest: of all weights, see `weights.weights_digest`.
        proposal_recall: of `JUDGED` proposals of an image of observe, as text.
    """

    detector: Detector
    loss: Loss
    digest: str
    proposal_recall: str


def find_theta(spec: DetectorSpec, classes: int) -> DetectorTheta:
    """Return a pre-trained detector, trained now if there is none.

    Args:
        spec: which one.
        classes: number of classes, without the background.

    Raises:
        DataError: if released weights do not match their record, or base weights are
            missing or others.
    """
    artifact = find_artifact(spec)
    tensors = artifact.tensors
    detector = unloaded(spec, classes)
    give(detector, tensors, spec)
    loss = DetectionAP() if spec.backbone.loss == "ap" else DetectionLoss()
    return DetectorTheta(
        detector.eval().to(device()),
        loss,
        weights_digest(tensors),
        _recall(artifact.facts),
    )


def unloaded(spec: DetectorSpec, classes: int) -> Detector:
    """Return the detector with random weights."""
    return build_detector(spec.backbone.network, classes, spec.seed)


def fresh(spec: DetectorSpec, classes: int) -> Detector:
    """Return the detector with the base weights."""
    detector = unloaded(spec, classes)
    load_base(detector.trunk, spec.backbone.base, data_root(), offline=True)
    return detector


def fetch_base(backbone: DetectorBackbone) -> None:
    """Download the weights a detector starts from, where torchvision offers them."""
    if backbone.base.source == "torchvision":
        detector = build_detector(backbone.network, 1, 0)
        load_base(detector.trunk, backbone.base, data_root())


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


def batches_of(scenes: Scenes, recipe: DetectorTraining) -> PermutedBatches:
    """Return the augmented mini-batches of a training."""
    flipped = scenes.flipped(upside_down=recipe.upside_down).to(device())
    return PermutedBatches(flipped, recipe.batch_size)


def training_of(recipe: DetectorTraining) -> Training:
    """Return the settings of the training loop for a detector."""
    return Training(
        epochs=recipe.epochs,
        learning_rate=recipe.rate,
        schedule="one-cycle",
        precision=recipe.precision,
        keep_best=False,
    )


def train_detector(spec: DetectorSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Train a detector, continuing from its checkpoint if there is one.

    Returns:
        Its weights (matrices in half precision), and facts: losses by epoch, average
        precision and recall of the proposals on observe, seconds, digest of the
        weights. For a network that diverged only that fact.
    """
    splits = load_problem(spec.problem, spec.replicate)
    recipe = spec.backbone.training
    detector = fresh(spec, len(splits.classes))
    freeze(detector.trunk, recipe.frozen)
    run = TrainingRun(
        detector,
        SampledRegionLoss(spec.backbone),
        batches_of(splits.train, recipe),
        training_of(recipe),
        generator=spec.seeds.generator("pre-training"),
    )
    observe = splits.observe.to(device())

    def judge(network: nn.Module) -> dict[str, float]:
        assert isinstance(network, Detector)
        head: Any = network.head(JUDGED)
        regions = Regions(head, observe, targets=observe.targets)
        outputs = predicted(head, regions, AT_ONCE)
        return {
            "observe_ap50": metric_of(Unit(CHECKED)).value(outputs, observe.targets),
            "observe_proposal_recall": proposal_recall(outputs, observe.targets),
        }

    return train_artifact(spec, run, judge, on_epoch)


def _recall(facts: Mapping[str, Any]) -> str:
    return f"{float(facts['observe_proposal_recall']):.4f}"


def proposal_recall(outputs: Tensor, truths: Tensor) -> float:
    """Return the share of objects that a proposal overlaps by more than half.

    Args:
        outputs: of the regions of N images, packed, shape [N, P, 5 C + 6].
        truths: their objects, shape [N, G, 6]; difficult ones do not count.
    """
    found, objects = region_outputs(outputs), counted(truths)
    overlaps = intersection_over_union(found.proposals, truths[..., :4])
    near = (overlaps > FOUND) & found.present[..., None]
    return int((near.any(1) & objects).sum()) / max(int(objects.sum()), 1)

"""Detection: theta is the box head of a detector, with FiLM on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from baselines.detection_losses.blackbox_ap import DetectionAP
from baselines.training.batches import Batches, SampledBatches
from baselines.training.optimization import Precision
from benchmarks.data.detection.contract import DETECTION
from benchmarks.networks.detection.contract import Detector, build_detector
from benchmarks.problems.choices import Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.pictured import changed_scenes
from benchmarks.problems.prerequisite import ImageCost, cost_of_image
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import predicted
from benchmarks.problems.splits import Splits, require_classes
from benchmarks.runs.record import PROPOSAL_RECALL
from benchmarks.runs.spec import Unit, metric_of
from metricopt.detection.detections import intersection_over_union
from metricopt.detection.head import Regions
from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import counted
from metricopt.errors import DataError, require_ranges
from metricopt.losses.contract import Loss
from metricopt.losses.detection import DetectionLoss
from metricopt.losses.portfolio import Portfolio
from metricopt.process.seeding import make_generator

ClassLoss = Literal["cross-entropy", "ap"]
CHECKED = "ap50"
"""Metric of a detector on observe, as its record tells it."""
JUDGED = 100
"""Proposals of an image that a training's record is judged by."""
FOUND = 0.5
"""Overlap from which a proposal is one of an object."""
RECALL = "observe_proposal_recall"
"""Name of the fact how many objects of observe a proposal overlaps."""
SIDE = 500
"""Pixels of a side of the image that a forecast is made with."""


@dataclass(frozen=True)
class DetectionProblem:
    """Images with objects; the data set says which are the test.

    Attributes:
        dataset: name of a data set of detection.
        observed: share of the training images that is kept for metric queries.
    """

    dataset: str
    observed: float

    def __post_init__(self) -> None:
        require_ranges("a problem", vars(self), observed="in (0, 1)")


@dataclass(frozen=True)
class DetectorTraining(ThetaTraining):
    """How theta is trained, by Adam with one cycle of the rate.

    Attributes:
        upside_down: whether a half of the images is flipped, as another half is
            mirrored; right for cells, wrong for photographs.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
        cross_entropy: weight of cross-entropy beside another loss of the classes.
            Without it, nothing would tell the background from the classes.
    """

    loop: ClassVar[Mapping[str, Any]] = {}
    rate: float = 1e-3
    batch_size: int = 4
    upside_down: bool = False
    precision: Precision = "float32"
    frozen: tuple[str, ...] = ()
    cross_entropy: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_ranges("training", vars(self), cross_entropy=">= 0")


@dataclass(frozen=True)
class DetectorBackbone:
    """A detector and how it was trained.

    Attributes:
        network: name of a detector.
        base: weights it starts from.
        loss: loss of the classes of its regions.
        training: how it was trained.
        revision: raised when code changes networks, so that no old one is reused.
    """

    network: str
    base: BaseWeights
    loss: ClassLoss
    training: DetectorTraining
    revision: int


@dataclass(frozen=True)
class DetectionSettings(PretrainedSettings):
    """Everything that decides a detection pipeline, except its replicate.

    Attributes:
        proposals: regions of an image that the box head sees.
    """

    problem: DetectionProblem
    backbone: DetectorBackbone
    batch_size: int = 16
    proposals: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        require_ranges("a box head", vars(self), proposals=">= 1")


def load_splits(problem: DetectionProblem, replicate: int) -> Splits:
    """Return the splits of a detection problem for one replicate.

    The data set says which images are the test, for all replicates. Of the training
    images a random share is `observe`, another one in every replicate.

    Raises:
        DataError: if a part would be empty, train or observe lacks a class, or files
            are missing or wrong.
    """
    data = DETECTION.get(problem.dataset)().load(offline=True)
    learnable = data.parts["train"]
    count = round(problem.observed * len(learnable))
    if not 0 < count < len(learnable):
        raise DataError(
            f"{data.label} has {len(learnable)} training images, of which a share of "
            f"{problem.observed} is observed: expected one or more in each part"
        )
    generator = make_generator("detection split", problem.dataset, replicate)
    order = learnable[torch.randperm(len(learnable), generator=generator)]
    parts = {"observe": order[:count], "train": order[count:]}
    parts["test"] = data.parts["test"]
    scenes = {name: Scenes(data, places) for name, places in parts.items()}
    for name in ("train", "observe"):
        objects = scenes[name].targets
        labels = objects[..., 4][counted(objects)].long()
        where = f"the {name} split of {data.label}"
        require_classes(where, labels, dict(enumerate(data.classes, 1)))
    return Splits(
        **scenes, variant=data.label, digest=data.digest, classes=len(data.classes)
    )


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


@PIPELINES.register("detection")
class DetectionPipeline(PretrainedPipeline):
    """A detection problem with its detector; see `NetworkPipeline`.

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
        return dict(changed_scenes(self.whole.test, classes, *both))


@cache
def _image_cost(settings: DetectionSettings) -> ImageCost:
    spec = DetectionThetaSpec(settings.problem, settings.backbone, 0)
    head: Any = spec.fresh().head(settings.proposals)
    with FlopCounterMode(display=False) as counter:
        regions = head.regions([torch.zeros(3, SIDE, SIDE)])
    of_head = cost_of_image(head, regions, settings.adapter, *head.sites)
    before = counter.get_total_flops()
    return replace(of_head, operations=of_head.operations + before)

"""What decides a detection pipeline: problem, detector and fine-tuning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from baselines.training.optimization import Precision
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from metricopt.errors import require_ranges

ClassLoss = Literal["cross-entropy", "ap"]


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
        epochs: passes over the training images.
        batch_size: images in one mini-batch.
        rate: greatest learning rate.
        upside_down: whether a half of the images is flipped, as another half is
            mirrored; right for cells, wrong for photographs.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
        frozen: names of the modules whose weights are not trained.
        cross_entropy: weight of cross-entropy beside another loss of the classes.
            Without it, nothing would tell the background from the classes.
    """

    loop: ClassVar[Mapping[str, Any]] = {}
    batch_size: int = 4
    rate: float = 1e-3
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

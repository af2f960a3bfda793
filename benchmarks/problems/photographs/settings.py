"""What decides a pipeline of photographs: problem, network and fine-tuning."""

from dataclasses import dataclass

from baselines.training.optimization import Optimizer, Precision, RateSchedule
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from metricopt.errors import require_ranges


@dataclass(frozen=True)
class PhotographProblem:
    """Photographs of classes; the data set says which are the test.

    Attributes:
        dataset: name of a data set of class folders, or of images of one size.
        side: pixels of the square images; those of one size keep theirs.
        observed: training images that are kept for metric queries.
        variant: variant of the data set; empty for class folders, which have none.
    """

    dataset: str
    side: int
    observed: int
    variant: str = ""

    def __post_init__(self) -> None:
        settings = vars(self)
        require_ranges("a problem", settings, side=">= 1", observed=">= 1")


@dataclass(frozen=True)
class ClassifierTraining(ThetaTraining):
    """How theta is trained, with cross-entropy; see `Training`.

    Attributes:
        epochs: passes over the training images.
        rate: greatest learning rate.
        batch_size: images in one mini-batch, over all processes.
        optimizer: "sgd", or "rmsprop" or "powersign" as NASNet has been trained.
        momentum: momentum of SGD and RMSProp.
        weight_decay: factor of the squared weights.
        schedule: schedule of the rate.
        warm_up: share of the steps of "one-cycle" in which the rate rises.
        least_area: least share of an image that a random crop holds.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
    """

    rate: float
    batch_size: int = 128
    optimizer: Optimizer = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: RateSchedule = "one-cycle"
    warm_up: float = 0.25
    least_area: float = 0.25
    precision: Precision = "float32"


@dataclass(frozen=True)
class ClassifierBackbone:
    """A network of photographs and how it was trained.

    Attributes:
        network: name of an image network.
        classes: number of classes C.
        training: how it was trained.
        revision: raised when code changes networks, so that no old one is reused.
    """

    network: str
    classes: int
    training: ClassifierTraining
    revision: int


@dataclass(frozen=True)
class PhotographSettings(PretrainedSettings):
    """Everything that decides a pipeline of photographs, except its replicate.

    Attributes:
        examples: training images fine-tuning takes its gradients on, the first ones,
            without augmentation; None for all.
    """

    problem: PhotographProblem
    backbone: ClassifierBackbone
    examples: int | None = None

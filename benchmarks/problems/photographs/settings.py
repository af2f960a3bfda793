"""What decides a pipeline of photographs: problem, network and fine-tuning."""

from dataclasses import dataclass

from baselines.training.optimization import Optimizer, Precision, RateSchedule
from benchmarks.problems.film_settings import FilmSettings
from metricopt.errors import ConfigError


@dataclass(frozen=True)
class PhotographProblem:
    """Photographs of classes; the data set says which are the test.

    Attributes:
        dataset: name of a data set of class folders, or of images of one size.
        side: pixels of the square images; those of one size keep theirs.
        observed: training images that are kept for metric queries.
        variant: of the data set; empty for class folders, which have none.
    """

    dataset: str
    side: int
    observed: int
    variant: str = ""

    def __post_init__(self) -> None:
        if self.side < 1 or self.observed < 1:
            raise ConfigError(
                "a problem of photographs needs side >= 1 and observed >= 1, got "
                f"{self.side} and {self.observed}"
            )


@dataclass(frozen=True)
class ClassifierTraining:
    """How a network is trained with cross-entropy; see `Training`.

    Attributes:
        epochs: each sees every image once.
        rate: greatest learning rate.
        batch_size: images of one mini-batch, over all processes.
        optimizer: "sgd", or "rmsprop" or "powersign" as NASNet has been trained.
        momentum: of SGD and RMSProp.
        weight_decay: factor of the squared weights.
        schedule: of the rate.
        warm_up: share of the steps of "one-cycle" in which the rate rises.
        least_area: of random crops, as a share of the image.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
    """

    epochs: int
    rate: float
    batch_size: int = 128
    optimizer: Optimizer = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: RateSchedule = "one-cycle"
    warm_up: float = 0.25
    least_area: float = 0.25
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if not 0 < self.least_area <= 1 or self.batch_size < 2:
            raise ConfigError(
                "training needs least_area in (0, 1] and batch_size >= 2, got "
                f"{self.least_area} and {self.batch_size}"
            )


@dataclass(frozen=True)
class Classifier:
    """A network of photographs and how it was trained.

    Attributes:
        network: name of an image network.
        classes: number of classes C.
        training: how.
        revision: raised when code changes networks, so that no old one is reused.
    """

    network: str
    classes: int
    training: ClassifierTraining
    revision: int


@dataclass(frozen=True)
class ImagenetSettings:
    """Everything that decides a pipeline of photographs, except its replicate.

    Attributes:
        problem: the photographs.
        backbone: the network.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: FiLM, its form and place.
        batch_size: images of one mini-batch of fine-tuning.
        examples: training images fine-tuning takes its gradients on, the first ones,
            without augmentation; None for all.
    """

    problem: PhotographProblem
    backbone: Classifier
    revision: int
    adapter: FilmSettings
    batch_size: int = 128
    examples: int | None = None

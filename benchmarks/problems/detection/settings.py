"""What decides a detection pipeline: problem, detector and fine-tuning."""

from dataclasses import dataclass
from typing import Literal

from baselines.training.optimization import Precision
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.pretrained.base_weights import BaseWeights
from metricopt.errors import ConfigError, require_choice

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
        if not 0 < self.observed < 1:
            raise ConfigError(
                f"a detection problem needs observed in (0, 1), got {self.observed}"
            )


@dataclass(frozen=True)
class DetectorTraining:
    """How a detector is trained, by Adam with one cycle of the rate.

    Attributes:
        epochs: each sees every image once.
        batch_size: images of one mini-batch.
        rate: greatest learning rate.
        upside_down: whether a half of the images is flipped, as another half is
            mirrored; right for cells, wrong for photographs.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
        frozen: names of the modules whose weights are not trained.
        cross_entropy: its weight beside another loss of the classes. Without it,
            nothing would tell the background from the classes.
    """

    epochs: int
    batch_size: int = 4
    rate: float = 1e-3
    upside_down: bool = False
    precision: Precision = "float32"
    frozen: tuple[str, ...] = ()
    cross_entropy: float = 0.1

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.rate <= 0 or self.cross_entropy < 0:
            raise ConfigError(
                "training needs epochs >= 1, rate > 0 and cross_entropy >= 0, got "
                f"{self.epochs}, {self.rate} and {self.cross_entropy}"
            )


@dataclass(frozen=True)
class DetectorBackbone:
    """A detector and how it was trained.

    Attributes:
        network: name of a detector.
        base: weights it starts from.
        loss: of the classes of its regions.
        training: how.
        revision: raised when code changes networks, so that no old one is reused.
    """

    network: str
    base: BaseWeights
    loss: ClassLoss
    training: DetectorTraining
    revision: int

    def __post_init__(self) -> None:
        require_choice("loss", self.loss, ClassLoss)


@dataclass(frozen=True)
class DetectionSettings:
    """Everything that decides a detection pipeline, except its replicate.

    Attributes:
        problem: the images.
        backbone: the detector.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: FiLM, its form and place.
        batch_size: images of one mini-batch of fine-tuning.
        proposals: regions of an image that the box head sees.
    """

    problem: DetectionProblem
    backbone: DetectorBackbone
    revision: int
    adapter: FilmSettings
    batch_size: int = 16
    proposals: int = 100

    def __post_init__(self) -> None:
        if self.batch_size < 2 or self.proposals < 1:
            raise ConfigError(
                "a detection pipeline needs batch_size >= 2 and proposals >= 1, got "
                f"{self.batch_size} and {self.proposals}"
            )

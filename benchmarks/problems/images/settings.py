"""What decides an image pipeline: problem, network, adapter and fine-tuning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from benchmarks.data.registry import find_source
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.settings import DIRECT, FilmSettings, ThetaTraining
from benchmarks.runs.codec import later
from metricopt.errors import require_ranges

LEARNED_SHARE = 0.8
"""What is not the test part, of a data set without an official one."""
OBSERVE_SHARE = 0.1
"""Part of the training images that is kept for metric queries: 5,000 of CIFAR-10's."""


@dataclass(frozen=True)
class ImageProblem:
    """An image data set, and what is done to its training part.

    Attributes:
        dataset: name of the data set.
        variant: variant of the data set.
        imbalance: examples of the first class per example of the last; 1 for none.
        label_noise: share of the training labels replaced by another class.
        max_examples: training images before the imbalance; None for all.
    """

    dataset: str
    variant: str
    imbalance: int = 1
    label_noise: float = 0.0
    max_examples: int | None = None

    def __post_init__(self) -> None:
        settings = vars(self)
        require_ranges("a problem", settings, imbalance=">= 1", label_noise="in [0, 1)")

    @property
    def test_per_train(self) -> float:
        """Examples tested on per example trained on, in random splits.

        0 for a data set with an official test part, which all replicates share.
        """
        if find_source(self.dataset).specs[0].train_rows is not None:
            return 0.0
        return (1 - LEARNED_SHARE) / (LEARNED_SHARE * (1 - OBSERVE_SHARE))


@dataclass(frozen=True)
class ImageTraining(ThetaTraining):
    """How theta is trained, by SGD.

    Attributes:
        schedule: "one-cycle", or "steps": divided by 10 after 1/2 and 3/4.
        momentum: momentum of SGD.
        nesterov: whether the momentum is Nesterov's.
        weight_decay: factor of the squared weights; not applied to what a loss learns.
        shift: how far random crops reach over every edge, pixels, at most an eighth of
            the height; None for all of it.

    Source: He et al., CVPR 2016, Sec. 4.2: SGD with momentum 0.9 from rate 0.1, divided
    by 10 after 1/2 and 3/4 of 64,000 steps of 128 images. Differs: bfloat16 where
    it is fast, and a one-cycle schedule (Smith and Topin, 2019) needs a quarter of the
    epochs.
    """

    loop: ClassVar[Mapping[str, Any]] = {
        "optimizer": "sgd",
        "warm_up": 0.25,
        "precision": "fastest",
        "channels_last": True,
    }
    rate: float = 0.2
    schedule: Literal["one-cycle", "steps"] = "one-cycle"
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    shift: int | None = later(None)


@dataclass(frozen=True)
class ImageBackbone:
    """A network and how it was trained.

    Attributes:
        network: name of an image network.
        classes: number of classes C.
        loss: name of the loss it is trained with; where a method trains it, name of
            the loss that fine-tuning follows.
        loss_settings: settings of that loss.
        pretraining: how it is trained.
        revision: raised when code changes networks, so that no old one is reused.
        start: the network whose weights training starts from; None for random ones.
        taught: the method that trains it; None for the loss alone.
    """

    network: str
    classes: int
    loss: str
    loss_settings: Mapping[str, Any] = field(hash=False)
    pretraining: ImageTraining
    revision: int
    start: Self | None = None
    taught: TrainedByMethod | None = later(None)  # noqa: RUF009


@dataclass(frozen=True)
class Finetuning:
    """Where fine-tuning takes its gradients.

    Attributes:
        batch_size: images in one mini-batch.
        examples: training images used, without augmentation.
    """

    batch_size: int
    examples: int


@dataclass(frozen=True)
class ImageSettings:
    """Everything that decides an image pipeline, except its replicate.

    Attributes:
        problem: the images.
        backbone: the network.
        finetune: mini-batches of fine-tuning.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: FiLM, its form and place.
        sampling: `natural` or `balanced` mini-batches.
        observed: images of the observe split that are used, the first ones; None for
            all. Training and the network do not depend on it.
    """

    problem: ImageProblem
    backbone: ImageBackbone
    finetune: Finetuning
    revision: int
    adapter: FilmSettings = DIRECT
    sampling: Literal["natural", "balanced"] = "natural"
    observed: int | None = later(None)

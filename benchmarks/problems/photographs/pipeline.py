"""Photographs of classes: theta with FiLM on its last feature map."""

import copy
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.loop import TrainingRun, train
from baselines.training.optimization import Precision, RateSchedule
from benchmarks.data.contract import Dataset
from benchmarks.data.files.decoded import Pixels, kept_at, kept_bytes, pixels
from benchmarks.data.folders.contract import FOLDERS, FolderImages
from benchmarks.data.registry import find_source, load_dataset, variant_shape
from benchmarks.networks.contract import build_network
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.images.course import ImageMethodTraining
from benchmarks.problems.images.settings import ImageBackbone, ImageProblem
from benchmarks.problems.images.theta import ImageThetaSpec
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.splits import Splits, require_classes
from benchmarks.runs.codec import later
from metricopt.adapters.applied.changed import LACKING
from metricopt.adapters.export import state_digest
from metricopt.errors import ConfigError, DataError, require_ranges
from metricopt.losses.contract import Loss
from metricopt.metrics.confusion import class_shares
from metricopt.process.seeding import make_generator


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
        optimizer: "sgd", "rmsprop" or "powersign" as NASNet has been trained, or any
            other of `OPTIMIZERS`.
        momentum: momentum of SGD and RMSProp.
        weight_decay: factor of the squared weights.
        schedule: schedule of the rate.
        warm_up: share of the steps of "one-cycle" in which the rate rises.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
    """

    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: RateSchedule = "one-cycle"
    warm_up: float = 0.25
    least_area: float = 0.25
    precision: Precision = "float32"


@dataclass(frozen=True)
class PolicySource:
    """A network on other images in whose training a policy of ALA was learned.

    Attributes:
        problem: its images.
        backbone: the network, trained by ALA.
    """

    problem: ImageProblem
    backbone: ImageBackbone


@dataclass(frozen=True)
class ClassifierBackbone:
    """A network of photographs and how it was trained.

    Attributes:
        network: name of an image network.
        classes: number of classes C.
        training: how it was trained.
        revision: raised when code changes networks, so that no old one is reused.
        taught: the method that trains it; None for cross-entropy alone.
        policy_of: the network whose policy the method uses; None for its own.
    """

    network: str
    classes: int
    training: ClassifierTraining
    revision: int
    taught: TrainedByMethod | None = later(None)  # noqa: RUF009
    policy_of: PolicySource | None = later(None)  # noqa: RUF009


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


def load_splits(problem: PhotographProblem, replicate: int) -> Splits:
    """Return the splits of a problem for one replicate.

    The data set says which images are the test, for all replicates. Of the training
    images a random part is `observe`, another one in every replicate.

    Raises:
        ConfigError: if images of one size are asked for at another, or there is no test
            part.
        DataError: if observe takes all training images, lacks a class, or files are
            missing or wrong.
    """
    data, source = _read(problem)
    rows = _train_rows(data.train_rows, data.label)
    if problem.observed >= rows:
        raise DataError(
            f"{data.label} has {rows:,} training images: expected fewer to be "
            f"observed, got {problem.observed:,}"
        )
    generator = make_generator("photograph split", problem.dataset, replicate)
    order = torch.randperm(rows, generator=generator)
    classes = len(data.classes)
    observed, learned = order[: problem.observed], order[problem.observed :]
    for name, places in (("observe", observed), ("train", learned)):
        where = f"the {name} split of {data.label}"
        require_classes(where, data.targets[places], dict(enumerate(range(classes))))

    def part(places: Tensor) -> Photographs:
        return Photographs(source, places, data.targets[places])

    test = torch.arange(rows, len(data.targets))
    parts = (part(places) for places in (learned, observed, test))
    return Splits(*parts, data.label, data.digest, classes)


def counted(problem: PhotographProblem) -> tuple[int, int]:
    """Return how many images train and test, without data.

    Raises:
        ConfigError: if there is no such data set, or it has no test part.
    """
    if problem.dataset in FOLDERS:
        return FOLDERS.get(problem.dataset).expected[:2]
    rows, *_ = variant_shape(problem.dataset, problem.variant)
    specs = {spec.name: spec for spec in find_source(problem.dataset).specs}
    train = _train_rows(specs[problem.variant].train_rows, problem.dataset)
    return train, rows - train


def _read(problem: PhotographProblem) -> tuple[FolderImages | Dataset, Pixels]:
    """Return all images of a data set, those to train first, and their pixels."""
    if problem.dataset in FOLDERS:
        images = FOLDERS.get(problem.dataset)().load(offline=True)
        return images, pixels(images, problem.side)
    data = load_dataset(problem.dataset, problem.variant, offline=True)
    found, wanted = tuple(data.inputs.shape[1:]), (problem.side, problem.side, 3)
    if found != wanted or data.inputs.dtype != torch.uint8:
        raise ConfigError(
            f"{data.label} must hold colour images of {problem.side} x {problem.side} "
            f"pixels, bytes of shape {wanted}, got {data.inputs.dtype} of {found}"
        )
    return data, partial(kept_at, data.inputs.numpy())


def _train_rows(rows: int | None, name: str) -> int:
    if rows is None:
        raise ConfigError(f"{name} has no test part; expected a data set with one")
    return rows


class PhotographThetaSpec(ThetaSpec):
    """Photographs, the network and the replicate."""

    kind = "classifier-theta"
    load = staticmethod(load_splits)
    course = ImageMethodTraining
    problem: PhotographProblem
    backbone: ClassifierBackbone

    @property
    def trained_with(self) -> str:
        """The optimiser, and the method beside it."""
        optimizer, taught = self.backbone.training.optimizer, self.taught
        return optimizer if taught is None else f"{optimizer}-{taught.label}"

    @property
    def teacher(self) -> ImageThetaSpec | None:
        """The network whose policy is used; None if the policy learns here."""
        source = self.backbone.policy_of
        if source is None:
            return None
        return ImageThetaSpec(source.problem, source.backbone, self.replicate)

    def fresh(self) -> nn.Sequential:
        """Return the network with random weights."""

        def head(features: int) -> nn.Module:
            return nn.Linear(features, self.classes)

        return build_network(self.backbone.network, head, self.seed)

    def loss(self) -> Loss:
        """Return cross-entropy."""
        return nn.CrossEntropyLoss()

    def augmented(self, train: Photographs, recipe: ClassifierTraining) -> Photographs:
        """Return random crops of the training images."""
        return train.with_crops(recipe.least_area)

    def sites(self, network: Any) -> tuple[str]:
        """Return the pooling of the last feature map.

        The mean of a map that is scaled and shifted is its mean, scaled and shifted. So
        FiLM after the pooling is FiLM on the map, at a fraction of the cost.
        """
        return (str(len(network) - 3),)


@PIPELINES.register("imagenet")
class PhotographPipeline(PretrainedPipeline):
    """A problem of photographs with its network; see `NetworkPipeline`."""

    settings_type = PhotographSettings
    settings: PhotographSettings
    spec_type = PhotographThetaSpec

    @property
    def used(self) -> Mapping[str, int | None]:
        """Training images that fine-tuning sees, the first ones."""
        return {"train": self.settings.examples}

    @property
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""
        train, test = counted(self.settings.problem)
        observed = self.settings.problem.observed
        learned = train - observed
        used = min(learned, self.settings.examples or learned)
        return learned, used + observed + test

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes of decoded images; see `Pipeline`."""
        problem = self.settings.problem
        if problem.dataset not in FOLDERS:
            return {}
        size = kept_bytes(sum(counted(problem)), problem.side)
        return {f"{problem.dataset}-{problem.side}": size}

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the images theta was trained on."""
        return class_shares(self.whole.train.targets, self.whole.classes)

    def continued(
        self, phi: Tensor, changes: Mapping[str, Any], *, generator: torch.Generator
    ) -> "PhotographPipeline":
        """Return the same problem with a network that was trained on, with phi in it.

        FiLM alone is in it while it is trained: offsets would be lost in its bias.
        """
        network = copy.deepcopy(self.theta)
        with (
            self.film_of(network).attach(phi.to(self.device)),
            warnings.catch_warnings(),
        ):
            # The weights alone are wanted, and kept while training goes on.
            warnings.filterwarnings("ignore", re.escape(LACKING))
            run = TrainingRun(
                network.requires_grad_(True),
                self.loss,
                self.batches(changes),
                self.training(changes),
                generator=generator,
            )
            train(run)
        moved = PhotographPipeline(self.settings, self.replicate)
        moved.whole, moved._sealed = self.whole, True
        digest = state_digest(network.state_dict())
        moved.pretrained = replace(
            self.pretrained, network=network.eval(), digest=digest
        )
        return moved

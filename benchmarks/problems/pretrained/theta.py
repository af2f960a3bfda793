"""Theta, the pre-trained network: found in the cache, among the released, or made.

A network is identified by all that determines it. A network trained on this machine, or
being trained, takes precedence over a released one.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from tqdm import tqdm

from baselines.training.batches import Batches, PermutedBatches
from baselines.training.checkpoint import Checkpoints
from baselines.training.loop import Hooks, OnEpoch, TrainingRun, train
from baselines.training.selection import Epoch
from baselines.training.team import team
from benchmarks.problems.pretrained.base_weights import (
    OFFERED,
    BaseWeights,
    load_base,
)
from benchmarks.problems.pretrained.kept_training import DIVERGED, KeptTraining
from benchmarks.problems.pretrained.method_training import (
    MethodTraining,
    TrainedByMethod,
)
from benchmarks.problems.pretrained.settings import ThetaTraining
from benchmarks.problems.pretrained.weights import (
    Theta,
    assembled,
    device,
    freeze,
    kept,
    predicted,
)
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DivergedError
from metricopt.losses.contract import Loss
from metricopt.process.seeding import Seeds
from metricopt.tasks.examples import Examples

TRAINING = "pre-training"
"""Name of the generator that a training draws from."""


@dataclass(frozen=True)
class ThetaSpec(KeptTraining):
    """Everything that determines theta; a kind of problem says how it is made.

    Attributes:
        problem: the images it is trained on.
        backbone: network, loss and training.
        replicate: decides splits and seeds.
        told: facts that a table of released networks shows, by heading.
        at_once: images that the network sees at a time when it is judged.
        course: trains it by a network method, and says what is noted of the way.
        load: returns the splits of a problem for a replicate.
        recipe_field: field of the settings of the network that says how it is trained.
    """

    problem: Any
    backbone: Any
    replicate: int
    told: ClassVar[Mapping[str, str]] = {"error on observe": "observe_mcr"}
    at_once: ClassVar[int] = 128
    course: ClassVar[type[MethodTraining]] = MethodTraining
    load: ClassVar[Callable[[Any, int], Splits]]
    recipe_field: ClassVar[str] = "training"

    @property
    def classes(self) -> int:
        """Number of classes C that it is trained on."""
        return self.backbone.classes

    def splits(self) -> Splits:
        """Return all images of the problem."""
        return self.load(self.problem, self.replicate)

    @abstractmethod
    def fresh(self) -> Any:
        """Return the network with random weights."""

    @abstractmethod
    def loss(self) -> Loss:
        """Return the loss of fine-tuning, with nothing learned yet."""

    def training_loss(self) -> Loss:
        """Return the loss it is trained with, by default that of fine-tuning."""
        return self.loss()

    def trunk(self, network: Any) -> nn.Module:
        """Return the part of a network that base weights are for."""
        return network

    @property
    def base(self) -> BaseWeights:
        """Weights that it begins with; random where the settings name none."""
        return getattr(self.backbone, "base", BaseWeights())

    def begun(self, *, offline: bool = True) -> Any:
        """Return the network with its base weights."""
        network = self.fresh()
        load_base(self.trunk(network), self.base, data_root(), offline=offline)
        return network

    def fetch_base(self) -> None:
        """Download the base weights where they are published."""
        if self.base.source in OFFERED:
            _fetch(replace(self.alone, replicate=0))

    def start(self, splits: Splits) -> Any:
        """Return the network as its training starts."""
        network = self.begun()
        freeze(self.trunk(network), self.recipe.frozen)
        return network

    def augmented(self, train: Any, recipe: Any) -> Any:
        """Return training images with the augmentation of a recipe."""
        return train

    def batches(self, splits: Splits, recipe: Any) -> Batches:
        """Return the augmented mini-batches of a training."""
        images = self.augmented(splits.train, recipe).to(device())
        return PermutedBatches(images, recipe.batch_size)

    def judge(self, network: nn.Module, observe: Any) -> dict[str, float]:
        """Return facts of how good a network is: by default the error of classes."""
        outputs = predicted(network, observe, self.at_once)
        called = outputs[:, : self.classes].argmax(1)
        return {"observe_mcr": float((called != observe.targets).double().mean())}

    def sites(self, network: Any) -> Sequence[str]:
        """Return where FiLM stands by default; empty for FiLM's own choice."""
        return getattr(network, "sites", ())

    def image(self) -> Tensor:
        """Return an input of the network, to measure its cost."""
        return torch.zeros(1, 3, self.problem.side, self.problem.side)

    @property
    def recipe(self) -> ThetaTraining:
        """How it is trained."""
        recipe: ThetaTraining = getattr(self.backbone, self.recipe_field)
        return recipe

    @property
    def trained_with(self) -> str:
        """What tells its training from others, for its name."""
        return self.backbone.loss if self.taught is None else self.taught.label

    @property
    def taught(self) -> TrainedByMethod | None:
        """The method that trains it; None for the loss alone."""
        by: TrainedByMethod | None = getattr(self.backbone, "taught", None)
        return by

    @property
    def teacher(self) -> "ThetaSpec | None":
        """The network whose policy its method uses; None for a policy of its own."""
        return None

    @property
    def warm(self) -> Sequence["ThetaSpec"]:
        """The networks that have to be trained before it."""
        return [] if self.teacher is None else [self.teacher]

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        named = (self.problem.dataset, self.backbone.network, self.trained_with)
        return "-".join([*named, f"r{self.replicate}"])

    @property
    def alone(self) -> Self:
        """The same network without its method."""
        if self.taught is None:
            return self
        return replace(self, backbone=replace(self.backbone, taught=None))

    @property
    def seeds(self) -> Seeds:
        """Seeds of its training: a method begins where the loss alone would."""
        return Seeds(self.alone.name)

    @property
    def seed(self) -> int:
        """Seed of the first weights."""
        return self.seeds.seed("theta")

    def find(self) -> Theta:
        """Return the network with its loss, trained now if there is none.

        Raises:
            DataError: if released weights do not match their record, or base weights
                are missing or others.
            DivergedError: if it diverged.
        """
        loss = self.loss()
        return assembled(self.fresh(), loss, self.kept(), self.name, self.kind)

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network, continuing from its checkpoint if there is one.

        Returns:
            Its weights (matrices in half precision), the loss's weights under `loss.`,
            and facts: losses by epoch, how good it is on observe, `seconds`, and
            `weights`, the digest. For a network that diverged only that fact, so that
            no run trains it again.

        Raises:
            ConfigError: if the network has another number of classes than the data.
        """
        splits = self.splits()
        if splits.classes != self.classes:
            raise ConfigError(
                f"{splits.variant} has {splits.classes} classes, and the network "
                f"{self.backbone.network} is to have {self.classes}"
            )
        network, batches = self.start(splits), self.batches(splits, self.recipe)
        return self._train(network, batches, splits.observe.to(device()), on_epoch)

    def _train(
        self,
        network: nn.Module,
        batches: Batches,
        observe: Examples,
        on_epoch: OnEpoch | None,
    ) -> Artifact:
        if self.taught is not None:
            course = self.course(self, batches, observe, on_epoch)
            return course.train(
                network,
                self.recipe.training(),
                self.seeds.generator(TRAINING),
                partial(
                    Checkpoints, self.checkpoints, self.digest, start=self._start()
                ),
            )
        run = TrainingRun(
            network,
            self.training_loss(),
            batches,
            self.recipe.training(),
            generator=self.seeds.generator(TRAINING),
        )
        checkpoint = Checkpoints(self.checkpoints, self.digest).next()
        try:
            train(run, hooks=Hooks(on_epoch), checkpoint=checkpoint)
        except DivergedError as error:
            return Artifact({}, {DIVERGED: str(error)})
        facts: dict[str, object] = {
            "losses": [round(loss, 5) for loss in run.losses],
            "seconds": round(sum(run.seconds), 1),
            "precision": run.precision,
        }
        judge = partial(self.judge, observe=observe)
        return kept(run.network, run.loss, judge, facts)

    def _start(self) -> str:
        """Return all that decides its training but the method and the greatest rate."""
        recipe = {self.recipe_field: replace(self.recipe, rate=1.0)}
        backbone = replace(self.backbone, taught=None, **recipe)
        content = encode(replace(self, backbone=backbone))
        metric = None if self.taught is None else encode(self.taught.metric)
        return canonical([content, metric])

    def make(self, *, quiet: bool = False) -> None:
        """Train it, with a bar of its epochs unless it is to be quiet."""
        epochs, hidden = self.recipe.epochs, quiet or not team().leads
        with tqdm(total=epochs, unit="epoch", desc=self.name, disable=hidden) as bar:

            def show(epoch: Epoch) -> None:
                bar.update(epoch.number - bar.n)
                bar.set_postfix(loss=f"{epoch.train_loss:.4f}")

            self.trained_here(show)

    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""
        facts, path = self.trained_here().facts, self.write()
        told = {head: f"{facts[name]:.4f}" for head, name in self.told.items()}
        return {
            "network": self.name,
            "epochs": str(self.recipe.epochs),
            "minutes": f"{float(str(facts['seconds'])) / 60:.1f}",
            **told,
            "MB": f"{path.stat().st_size / 1e6:.2f}",
        }


@cache
def _fetch(spec: ThetaSpec) -> None:
    """Download base weights, once for all methods."""
    spec.begun(offline=False)

"""Pre-trained networks of photographs: what determines one, and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from baselines.training.batches import PermutedBatches
from baselines.training.loop import OnEpoch, TrainingRun
from baselines.training.optimization import Training
from benchmarks.networks.contract import build_network
from benchmarks.problems.device import device
from benchmarks.problems.photographs.problem import PhotographSplits, load_problem
from benchmarks.problems.photographs.settings import (
    Classifier,
    ClassifierTraining,
    PhotographProblem,
)
from benchmarks.problems.pretrained.theta import (
    PretrainedSpec,
    find_artifact,
    give,
    predicted,
    train_artifact,
)
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from metricopt.errors import ConfigError

PREDICTED_AT_ONCE = 250


@dataclass(frozen=True)
class ClassifierSpec(PretrainedSpec):
    """Everything that determines a pre-trained network of photographs.

    Attributes:
        problem: the photographs.
        backbone: network and training.
        replicate: decides splits and seeds.
    """

    kind = "classifier-theta"
    problem: PhotographProblem
    backbone: Classifier
    replicate: int

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        backbone = self.backbone
        named = (self.problem.dataset, backbone.network, backbone.training.optimizer)
        return "-".join([*named, f"r{self.replicate}"])

    @property
    def epochs(self) -> int:
        """Length of its training."""
        return self.backbone.training.epochs

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network; see `train_classifier`."""
        return train_classifier(self, on_epoch)

    def told(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """Return its error on observe."""
        return {"error on observe": f"{float(facts['observe_mcr']):.4f}"}


@dataclass(frozen=True, eq=False)
class ClassifierTheta:
    """A pre-trained network.

    Attributes:
        network: in evaluation mode.
        digest: of all weights, see `weights.weights_digest`.
    """

    network: nn.Sequential
    digest: str


def find_theta(spec: ClassifierSpec) -> ClassifierTheta:
    """Return a pre-trained network, trained now if there is none.

    Raises:
        DataError: if released weights do not match their record.
    """
    tensors = find_artifact(spec).tensors
    network = fresh(spec)
    give(network, tensors, spec)
    return ClassifierTheta(network.eval().to(device()), weights_digest(tensors))


def fresh(spec: ClassifierSpec) -> nn.Sequential:
    """Return the network with random weights."""

    def head(features: int) -> nn.Module:
        return nn.Linear(features, spec.backbone.classes)

    return build_network(spec.backbone.network, head, spec.seed)


def pooled_map(network: nn.Sequential) -> str:
    """Return the name of the pooling of the last feature map, where FiLM stands.

    The mean of a map that is scaled and shifted is its mean, scaled and shifted. So
    FiLM after the pooling is FiLM on the map, at a fraction of the cost.
    """
    return str(len(network) - 3)


def batches_of(splits: PhotographSplits, recipe: ClassifierTraining) -> PermutedBatches:
    """Return the augmented mini-batches of a training."""
    examples = splits.train.with_crops(recipe.least_area).to(device())
    return PermutedBatches(examples, recipe.batch_size)


def training_of(recipe: ClassifierTraining) -> Training:
    """Return the settings of the training loop for a network of photographs."""
    return Training(
        epochs=recipe.epochs,
        learning_rate=recipe.rate,
        optimizer=recipe.optimizer,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        schedule=recipe.schedule,
        warm_up=recipe.warm_up,
        precision=recipe.precision,
        channels_last=True,
        keep_best=False,
    )


def train_classifier(spec: ClassifierSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Train a network, continuing from its checkpoint if there is one.

    Returns:
        Its weights (matrices in half precision), and facts: losses by epoch, error on
        observe, seconds, digest of the weights. For a network that diverged, only that
        fact, so that no run trains it again.

    Raises:
        ConfigError: if the network has another number of classes than the data.
    """
    splits = load_problem(spec.problem, spec.replicate)
    if splits.classes != spec.backbone.classes:
        raise ConfigError(
            f"{splits.variant} has {splits.classes} classes, and the network "
            f"{spec.backbone.network} is to have {spec.backbone.classes}"
        )
    run = TrainingRun(
        fresh(spec),
        nn.CrossEntropyLoss(),
        batches_of(splits, spec.backbone.training),
        training_of(spec.backbone.training),
        generator=spec.seeds.generator("pre-training"),
    )
    observe = splits.observe.to(device())

    def judge(network: nn.Module) -> dict[str, float]:
        called = predicted(network, observe, PREDICTED_AT_ONCE).argmax(1)
        return {"observe_mcr": float((called != observe.targets).double().mean())}

    return train_artifact(spec, run, judge, on_epoch)

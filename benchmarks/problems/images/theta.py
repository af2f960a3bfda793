"""Pre-trained image networks: what determines one, and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from baselines.losses.contract import make_loss
from baselines.losses.large_margin import MarginHead
from baselines.training.batches import PermutedBatches
from baselines.training.loop import OnEpoch, TrainingRun
from baselines.training.optimization import Training
from benchmarks.networks.contract import build_network
from benchmarks.problems.choices import NetworkCost
from benchmarks.problems.device import device
from benchmarks.problems.images.images import Images
from benchmarks.problems.images.problem import load_problem
from benchmarks.problems.images.school import School, cost_of
from benchmarks.problems.images.settings import (
    Backbone,
    ImageProblem,
    Pretraining,
)
from benchmarks.problems.pretrained.theta import (
    PretrainedSpec,
    find_artifact,
    give,
    parts,
    predicted,
    train_artifact,
)
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from metricopt.losses.contract import Loss, RowLoss, check_batch_size, properties
from metricopt.process.seeding import Seeds

KIND = "image-theta"
TRAINING = "pre-training"
"""Name of the generator that a training draws from."""
PREDICTED_AT_ONCE = 500
WARM_UP = 0.25
"""Share of a one-cycle schedule in which the rate rises."""


@dataclass(frozen=True)
class ThetaSpec(PretrainedSpec):
    """Everything that determines a pre-trained image network.

    Attributes:
        problem: the images.
        backbone: network, loss and training, and the network it starts from.
        replicate: decides splits and seeds.
    """

    kind = KIND
    problem: ImageProblem
    backbone: Backbone
    replicate: int

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        parts = [self.problem.dataset]
        if self.problem.imbalance > 1:
            parts.append(f"tail{self.problem.imbalance}")
        if self.problem.label_noise:
            parts.append(f"noise{round(100 * self.problem.label_noise)}")
        if self.problem.max_examples is not None:
            parts.append(f"first{self.problem.max_examples}")
        taught = self.backbone.taught
        parts += [
            self.backbone.network,
            self.backbone.loss if taught is None else taught.label,
        ]
        if self.start is not None and self.start.backbone.loss == parts[-1]:
            parts.append("longer")
        return "-".join([*parts, f"r{self.replicate}"])

    @property
    def epochs(self) -> int:
        """Length of its training."""
        return self.backbone.pretraining.epochs

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network; see `train_theta`."""
        return train_theta(self, on_epoch)

    def told(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """Return its error on observe."""
        return {"error on observe": f"{float(facts['observe_mcr']):.4f}"}

    @property
    def seeds(self) -> Seeds:
        """Seeds of its training: a method begins where the loss alone would."""
        alone = replace(self.backbone, taught=None)
        return Seeds(replace(self, backbone=alone).name)

    @property
    def start(self) -> "ThetaSpec | None":
        """The network that this one starts from."""
        if self.backbone.start is None:
            return None
        return ThetaSpec(self.problem, self.backbone.start, self.replicate)


@dataclass(frozen=True, eq=False)
class Theta:
    """A pre-trained network with its loss.

    Attributes:
        network: in evaluation mode.
        loss: what it was trained with; what it learned is frozen.
        digest: of all weights, see `weights.weights_digest`.
        cost: of its training, if a method trained it.
    """

    network: nn.Sequential
    loss: Loss
    digest: str
    cost: NetworkCost


def find_theta(spec: ThetaSpec, on_epoch: OnEpoch | None = None) -> Theta:
    """Return a pre-trained network, trained now if there is none.

    Args:
        spec: which one.
        on_epoch: called after every epoch of training.

    Raises:
        DataError: if the released weights do not match their record.
    """
    return assemble(spec, find_artifact(spec, on_epoch))


def train_theta(spec: ThetaSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Train a network, continuing from its checkpoint if there is one.

    Returns:
        Its weights (matrices in half precision), the loss's weights under `loss.`, and
        facts: losses by epoch, error on observe, seconds, digest of the weights. For a
        network that diverged, only that fact, so that no run trains it again. Where a
        method trains it there is no checkpoint, and its facts are those of `School`.
    """
    splits = load_problem(spec.problem, spec.replicate)
    recipe = spec.backbone.pretraining
    network, loss = fresh(spec)
    check_batch_size(loss, recipe.batch_size, splits.classes)
    if spec.start is not None:
        network.load_state_dict(find_theta(spec.start, on_epoch).network.state_dict())
    batches = PermutedBatches(splits.train.to(device()), recipe.batch_size)
    observe, generator = splits.observe.to(device()), spec.seeds.generator(TRAINING)

    def judge(network: nn.Module) -> dict[str, float]:
        called = predict_images(network, observe)[:, : splits.classes].argmax(1)
        error = (called != observe.targets).double().mean()
        return {"observe_mcr": float(error)}

    if spec.backbone.taught is not None:
        school = School(spec.backbone.taught, batches, observe, on_epoch)
        return school.train(network, training_of(recipe), judge, generator)
    run = TrainingRun(network, loss, batches, training_of(recipe), generator=generator)
    return train_artifact(spec, run, judge, on_epoch)


def training_of(recipe: Pretraining) -> Training:
    """Return the settings of the training loop for an image network.

    Source: He et al., CVPR 2016, Sec. 4.2: SGD with momentum 0.9 from rate 0.1, divided
    by 10 after 1/2 and 3/4 of 64,000 steps of 128 images. Differs: bfloat16, and a
    one-cycle schedule (Smith and Topin, 2019) needs a quarter of the epochs.
    """
    return Training(
        epochs=recipe.epochs,
        learning_rate=recipe.rate,
        optimizer="sgd",
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        weight_decay=recipe.weight_decay,
        schedule=recipe.schedule,
        warm_up=WARM_UP,
        precision="bfloat16",
        channels_last=True,
        keep_best=False,
    )


def fresh(spec: ThetaSpec) -> tuple[nn.Sequential, Loss]:
    """Return the network with random weights, and its loss."""
    loss, classes = make_theta_loss(spec.backbone), spec.backbone.classes
    doubled = properties(loss).outputs_per_class == 2

    def head(features: int) -> nn.Module:
        return (MarginHead if doubled else nn.Linear)(features, classes)

    return build_network(spec.backbone.network, head, spec.seed), loss


def make_theta_loss(backbone: Backbone) -> Loss:
    """Return the loss of a network, with nothing learned yet."""
    return make_loss(backbone.loss, classes=backbone.classes, **backbone.loss_settings)


def assemble(spec: ThetaSpec, made: Artifact) -> Theta:
    """Return network and loss as they were trained, frozen, where runs are made."""
    network, loss = fresh(spec)
    give(network, made.tensors, spec)
    if isinstance(loss, nn.Module):
        loss.load_state_dict(parts(made.tensors)[1])
        loss.requires_grad_(False).to(device())
    if isinstance(loss, RowLoss):
        loss.finish()
    network = network.eval().to(device())
    return Theta(network, loss, weights_digest(made.tensors), cost_of(made.facts))


def predict_images(network: nn.Module, images: Images) -> Tensor:
    """Return the float32 outputs of all images, without augmentation, [N, C]."""
    return predicted(network, images, PREDICTED_AT_ONCE)

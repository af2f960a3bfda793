"""Pre-trained networks: found in the cache, among the released weights, or made.

A network is identified by all that determines it. A network trained on this machine, or
being trained, takes precedence over a released one.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from baselines.training.loop import Hooks, OnEpoch, TrainingRun, train
from benchmarks.problems.pretrained.released import read_released, release
from benchmarks.problems.pretrained.weight_files import restore
from benchmarks.problems.pretrained.weights import half_weights, weights_digest
from benchmarks.runs.artifacts import Artifact, find, get_or_make
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.environment import device_name, environment
from benchmarks.runs.paths import cache_root
from metricopt.errors import ConfigError, DataError, DivergedError
from metricopt.losses.contract import Loss
from metricopt.process.seeding import Seeds
from metricopt.tasks.examples import Examples

LOSS_PREFIX = "loss."
DIVERGED = "diverged"
"""Name of the fact that a network diverged and has no weights; it holds the reason."""


class PretrainedSpec(ABC):
    """Everything that determines a pre-trained network; a dataclass.

    Attributes:
        kind: of the artifacts its networks are kept as.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""

    @property
    @abstractmethod
    def epochs(self) -> int:
        """Length of its training."""

    @abstractmethod
    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network, continuing from its checkpoint if there is one.

        Returns:
            Its weights, the loss's weights under `loss.`, and facts: at least
            `seconds`, and `weights`, their digest. For a network that diverged only
            that fact, so that no run trains it again.
        """

    @abstractmethod
    def told(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """Return what a table of released networks says of how good one is."""

    @property
    def content(self) -> dict[str, Any]:
        """All fields, JSON-able."""
        found: dict[str, Any] = encode(self)
        return found

    @property
    def digest(self) -> str:
        """Identity: sha256 of its canonical JSON."""
        return hashlib.sha256(canonical(self.content).encode()).hexdigest()

    @property
    def seeds(self) -> Seeds:
        """Seeds of its training."""
        return Seeds(self.name)

    @property
    def seed(self) -> int:
        """Seed of the first weights."""
        return self.seeds.seed("theta")

    @property
    def checkpoint(self) -> Path:
        """Where a training that is under way keeps its state."""
        return cache_root() / "pretraining" / f"{self.name}-{self.digest[:16]}.pt"


def find_artifact(spec: PretrainedSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Return a pre-trained network, trained now if there is none.

    Args:
        spec: which one.
        on_epoch: called after every epoch of training.

    Raises:
        DataError: if the released weights do not match their record.
        DivergedError: if it diverged.
    """
    here = is_trained(spec) or spec.checkpoint.exists()
    released = None if here else read_released(spec.name, spec.digest)
    return released or trained_here(spec, on_epoch)


def trained_here(spec: PretrainedSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Return a network trained on this machine, training it now if needed.

    Raises:
        DivergedError: if its loss became non-finite, now or before.
    """
    artifact = get_or_make(spec.kind, spec.content, lambda: spec.train(on_epoch))
    # Only now: if it were removed before the artifact is stored, a kill would lose all.
    spec.checkpoint.unlink(missing_ok=True)
    if DIVERGED in artifact.facts:
        raise DivergedError(str(artifact.facts[DIVERGED]))
    return artifact


def is_trained(spec: PretrainedSpec) -> bool:
    """Whether a network was trained on this machine, and is undamaged."""
    return find(spec.kind, spec.content) is not None


def is_ready(spec: PretrainedSpec) -> bool:
    """Whether `find_artifact` would not have to train."""
    if is_trained(spec):
        return True
    released = not spec.checkpoint.exists() and read_released(spec.name, spec.digest)
    return bool(released)


def release_theta(spec: PretrainedSpec) -> Path:
    """Write a network trained here to the released weights.

    Raises:
        ConfigError: if another network is released by that name.
    """
    return release(spec.name, spec.digest, spec.content, trained_here(spec))


def train_artifact(
    spec: PretrainedSpec,
    run: TrainingRun,
    judge: Callable[[nn.Module], dict[str, float]],
    on_epoch: OnEpoch | None = None,
) -> Artifact:
    """Train to the end, and return what is kept; see `PretrainedSpec.train`.

    Args:
        spec: gives checkpoint and identity.
        run: what is trained; its network ends with the weights that are kept.
        judge: returns what the record says of how good the network is.
        on_epoch: called after every epoch.
    """
    try:
        train(run, hooks=Hooks(on_epoch), checkpoint=spec.checkpoint, key=spec.digest)
    except DivergedError as error:
        return Artifact({}, {DIVERGED: str(error)})
    facts: dict[str, object] = {
        "losses": [round(loss, 5) for loss in run.losses],
        "seconds": round(sum(run.seconds), 1),
    }
    return kept(run.network, run.loss, judge, facts)


def kept(
    network: nn.Module,
    loss: Loss,
    judge: Callable[[nn.Module], dict[str, float]],
    facts: dict[str, object],
) -> Artifact:
    """Return what is kept of a trained network.

    Args:
        network: ends with the weights that are kept: matrices in half precision.
        loss: what it learned is kept, too.
        judge: returns what the record says of how good the network is.
        facts: of its training.
    """
    trained = network.state_dict()
    state = with_loss(half_weights({k: v.cpu() for k, v in trained.items()}), loss)
    network.load_state_dict(parts(state)[0])
    device = next(network.parameters()).device
    made = {
        "weights": weights_digest(state),
        "environment": environment() | {"device": device_name(device)},
    }
    judged = {name: round(value, 6) for name, value in judge(network).items()}
    return Artifact(state, facts | made | judged)


def freeze(network: nn.Module, names: Sequence[str]) -> None:
    """Keep the weights of some modules as they are.

    Args:
        network: changed in place.
        names: of its modules.

    Raises:
        ConfigError: if there is no module of that name.
    """
    modules = dict(network.named_modules())
    for name in names:
        if name not in modules:
            known = ", ".join(filter(None, modules))
            raise ConfigError(f"frozen must name modules of {known}, got {name!r}")
        modules[name].requires_grad_(False)


@torch.no_grad()
def predicted(network: nn.Module, examples: Examples, at_once: int) -> Tensor:
    """Return the float32 outputs of all examples, without augmentation, [N, C]."""
    network.eval()
    starts = range(0, len(examples), at_once)
    batches = (examples.batch(slice(at, at + at_once)) for at in starts)
    return torch.cat([network(batch) for batch in batches])


def with_loss(state: dict[str, Tensor], loss: Loss) -> dict[str, Tensor]:
    """Return the weights of a network with those that its loss has learned."""
    if not isinstance(loss, nn.Module):
        return state
    learned = loss.state_dict().items()
    kept = {name: v.cpu().clone() for name, v in learned if isinstance(v, Tensor)}
    return state | {f"{LOSS_PREFIX}{name}": v for name, v in kept.items()}


def give(network: nn.Module, tensors: dict[str, Tensor], spec: PretrainedSpec) -> None:
    """Give a network the weights that its specification was kept with.

    Raises:
        DataError: if they do not fit it, or are not finite.
    """
    try:
        restore(network, parts(tensors)[0], spec.name)
    except DataError as error:
        raise DataError(
            f"{error}; run `./reproduce.sh cache clear {spec.kind}`, and restore "
            "results/weights with git"
        ) from error


def parts(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of the network, and those of its loss."""
    of_network, of_loss = dict[str, Tensor](), dict[str, Tensor]()
    for name, tensor in tensors.items():
        part = of_loss if name.startswith(LOSS_PREFIX) else of_network
        part[name.removeprefix(LOSS_PREFIX)] = tensor
    return of_network, of_loss

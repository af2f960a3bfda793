"""Pre-trained image networks: found in the cache, among the released weights, or made.

A network is identified by all that determines it. What was trained here, or is being
trained, goes before what was released.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from baselines.losses import Loss, check_batch_size, make_loss
from baselines.losses.large_margin import MarginHead, annealing_at
from benchmarks.artifacts import Artifact, artifact_path, get_or_make
from benchmarks.environment import device_name, environment
from benchmarks.image_data import Images, device, load_problem
from benchmarks.image_networks import build_network
from benchmarks.paths import cache_root, write_atomically
from benchmarks.pretraining import (
    EpochReport,
    Pretraining,
    PretrainingRun,
    half_weights,
    predict_images,
    pretrain,
    state_digest,
)
from benchmarks.records import canonical
from metricopt.errors import ConfigError, DataError, DivergedError
from metricopt.seeding import derive_seed

RELEASED = Path(__file__).parent.parent / "results" / "weights"
KIND = "image-theta"
LOSS_PREFIX = "loss."
DIVERGED = "diverged"
"""Fact of a network that has no weights, with the reason."""

OnEpoch = Callable[[EpochReport], None]


@dataclass(frozen=True)
class ThetaSpec:
    """Everything that determines a pre-trained image network.

    Attributes:
        problem: see `benchmarks.image_data.load_problem`.
        backbone: `network`, `loss`, `loss_settings`, `pretraining` (settings of
            `Pretraining`) and `start`: the backbone it goes on from, or None.
        replicate: decides splits and seeds.
    """

    problem: dict[str, Any]
    backbone: dict[str, Any]
    replicate: int

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        parts = [self.problem["dataset"]]
        if self.problem["imbalance"] > 1:
            parts.append(f"tail{self.problem['imbalance']}")
        if self.problem["label_noise"]:
            parts.append(f"noise{round(100 * self.problem['label_noise'])}")
        parts += [self.backbone["network"], self.backbone["loss"]]
        if self.start is not None and self.start.backbone["loss"] == parts[-1]:
            parts.append("longer")
        return "-".join([*parts, f"r{self.replicate}"])

    @property
    def digest(self) -> str:
        """Identity: sha256 of its canonical JSON."""
        return hashlib.sha256(canonical(asdict(self)).encode()).hexdigest()

    @property
    def start(self) -> "ThetaSpec | None":
        """The network this one goes on from."""
        if self.backbone["start"] is None:
            return None
        return ThetaSpec(self.problem, self.backbone["start"], self.replicate)

    @property
    def seed(self) -> int:
        """Seed of the first weights."""
        return derive_seed(self.name, "theta")

    @property
    def checkpoint(self) -> Path:
        """Where a training that is under way keeps its state."""
        return cache_root() / "pretraining" / f"{self.name}-{self.digest[:16]}.pt"


@dataclass(frozen=True, eq=False)
class Theta:
    """A pre-trained network with its loss.

    Attributes:
        network: in evaluation mode.
        loss: what it was trained with; what it learned is frozen.
        digest: of all weights, see `state_digest`.
    """

    network: nn.Sequential
    loss: Loss
    digest: str


def find_theta(spec: ThetaSpec, on_epoch: OnEpoch | None = None) -> Theta:
    """Return a pre-trained network, trained now if it is nowhere.

    Args:
        spec: which one.
        on_epoch: called after every epoch of training.

    Raises:
        DataError: if the released weights are not those of their record.
    """
    here = is_trained(spec) or spec.checkpoint.exists()
    released = None if here else read_released(spec)
    artifact = released or trained_here(spec, on_epoch)
    return assemble(spec, artifact.tensors)


def trained_here(spec: ThetaSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Return a network trained on this machine, now if it is not yet.

    Raises:
        DivergedError: if its loss became non-finite, now or before.
    """
    artifact = get_or_make(KIND, asdict(spec), lambda: train_theta(spec, on_epoch))
    # Not before: a kill in between would lose the training.
    spec.checkpoint.unlink(missing_ok=True)
    if DIVERGED in artifact.facts:
        raise DivergedError(str(artifact.facts[DIVERGED]))
    return artifact


def is_trained(spec: ThetaSpec) -> bool:
    """Whether a network was trained on this machine."""
    return artifact_path(KIND, asdict(spec)).exists()


def is_ready(spec: ThetaSpec) -> bool:
    """Whether `find_theta` would not have to train."""
    if is_trained(spec):
        return True
    return not spec.checkpoint.exists() and read_released(spec) is not None


def train_theta(spec: ThetaSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Train a network, going on from its checkpoint if there is one.

    Returns:
        Its weights, matrices in half precision, those of its loss under `loss.`, and
        facts: losses by epoch, error on observe, seconds, digest of the weights. If it
        diverged, that fact alone: no run of it need find out again.
    """
    problem = load_problem(spec.problem, spec.replicate)
    recipe = Pretraining(**spec.backbone["pretraining"])
    network, loss = fresh(spec)
    check_batch_size(loss, recipe.batch_size, problem.classes)
    if spec.start is not None:
        network.load_state_dict(find_theta(spec.start, on_epoch).network.state_dict())
    run = PretrainingRun(
        network,
        loss,
        recipe,
        images=problem.train.to(device()),
        generator=torch.Generator().manual_seed(derive_seed(spec.name, "pre-training")),
        anneal=_annealing(loss, spec.backbone["loss_settings"]),
    )
    try:
        pretrain(run, spec.checkpoint, key=spec.digest, on_epoch=on_epoch)
    except DivergedError as error:
        return Artifact({}, {DIVERGED: str(error)})
    return _artifact(run, problem.observe.to(device()), problem.classes)


def fresh(spec: ThetaSpec) -> tuple[nn.Sequential, Loss]:
    """Return the network with random weights, and its loss."""
    loss, classes = make_theta_loss(spec.backbone), spec.backbone["classes"]
    doubled = getattr(loss, "outputs_per_class", 1) == 2

    def head(features: int) -> nn.Module:
        return (MarginHead if doubled else nn.Linear)(features, classes)

    return build_network(spec.backbone["network"], head, spec.seed), loss


def make_theta_loss(backbone: dict[str, Any]) -> Loss:
    """Return the loss of a backbone, with nothing learned yet."""
    settings = dict(backbone["loss_settings"])
    settings.pop("annealing", None)
    return make_loss(backbone["loss"], classes=backbone["classes"], **settings)


def assemble(spec: ThetaSpec, tensors: dict[str, Tensor]) -> Theta:
    """Return network and loss with these weights, frozen, where runs are made."""
    network, loss = fresh(spec)
    of_network, of_loss = _parts(tensors)
    network.load_state_dict(of_network)
    if isinstance(loss, nn.Module):
        loss.load_state_dict(of_loss)
        loss.requires_grad_(False).to(device())
        anneal = _annealing(loss, spec.backbone["loss_settings"])
        if anneal is not None:
            anneal(1, 1)  # as it was at the end
    return Theta(network.eval().to(device()), loss, state_digest(tensors))


def release(spec: ThetaSpec, artifact: Artifact) -> Path:
    """Write a network and its record to where users find them.

    Args:
        spec: which one.
        artifact: its weights and facts.

    Raises:
        ConfigError: if a network of another tier or recipe is released by that name.
    """
    path = RELEASED / f"{spec.name}.safetensors"
    if path.exists() and _released_digest(path) != spec.digest:
        raise ConfigError(
            f"{path.name} holds a network of another recipe; expected that of "
            f"{spec.digest[:16]}, so move it away first"
        )
    record = {"spec": asdict(spec), **artifact.facts}
    write_atomically(path, save(artifact.tensors, {"spec": spec.digest}))
    text = json.dumps(record, indent=1, sort_keys=True)
    write_atomically(path.with_suffix(".json"), f"{text}\n".encode())
    return path


def read_released(spec: ThetaSpec) -> Artifact | None:
    """Return a released network, None if there is none of exactly this specification.

    Raises:
        DataError: if its weights are not those its record names, or it has none.
    """
    path = RELEASED / f"{spec.name}.safetensors"
    record = path.with_suffix(".json")
    if not path.exists() or _released_digest(path) != spec.digest:
        return None
    if not record.exists():
        raise DataError(f"{path.name} needs its record {record.name} beside it")
    try:
        facts = json.loads(record.read_text())
        expected = facts["weights"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{record.name} is no record of a network; restore it with git"
        ) from error
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    found = state_digest(tensors)
    if found != expected:
        raise DataError(
            f"{path.name} must hold the weights {expected}, got {found}; "
            "restore it with git"
        )
    return Artifact(tensors, facts)


def _released_digest(path: Path) -> str | None:
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
    except SafetensorError as error:
        raise DataError(
            f"{path.name} is no whole safetensors file; restore it with git"
        ) from error
    return metadata.get("spec")


def _artifact(run: PretrainingRun, observe: Images, classes: int) -> Artifact:
    state = half_weights({k: v.cpu() for k, v in run.network.state_dict().items()})
    if isinstance(run.loss, nn.Module):
        learned = run.loss.state_dict().items()
        state |= {f"{LOSS_PREFIX}{name}": v.cpu().clone() for name, v in learned}
    run.network.load_state_dict(_parts(state)[0])
    called = predict_images(run.network, observe.batches)[:, :classes].argmax(1)
    error = (called != observe.targets).double().mean()
    facts: dict[str, object] = {
        "losses": [round(loss, 5) for loss in run.losses],
        "observe_mcr": round(float(error), 6),
        "seconds": round(sum(run.seconds), 1),
        "weights": state_digest(state),
        "environment": environment() | {"device": device_name(run.device)},
    }
    return Artifact(state, facts)


def _parts(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of the network, and those of its loss."""
    of_network, of_loss = dict[str, Tensor](), dict[str, Tensor]()
    for name, tensor in tensors.items():
        part = of_loss if name.startswith(LOSS_PREFIX) else of_network
        part[name.removeprefix(LOSS_PREFIX)] = tensor
    return of_network, of_loss


def _annealing(
    loss: Loss, settings: dict[str, Any]
) -> Callable[[int, int], None] | None:
    """Return what sets the annealing of a large-margin loss before every step."""
    schedule = settings.get("annealing")
    if schedule is None:
        return None

    def anneal(step: int, steps: int) -> None:
        # The published schedule is of so many steps; ours may be longer or shorter.
        place = round(step * schedule["steps"] / steps)
        loss.annealing = annealing_at(  # type: ignore[union-attr]
            place,
            start=schedule["start"],
            gamma=schedule["gamma"],
            least=schedule["least"],
        )

    return anneal

"""Weights of theta: kept small on disk, identified, and given back to a network."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from benchmarks.problems.choices import NetworkCost
from benchmarks.problems.pretrained.base_weights import restore
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import digest_of
from benchmarks.runs.environment import device_name, environment
from benchmarks.runs.paths import ROOT
from metricopt.adapters.export import state_digest
from metricopt.errors import ConfigError, DataError, MetricOptError
from metricopt.files import read_metadata, read_tensors, read_text, write_atomically
from metricopt.losses.contract import Loss, RowLoss
from metricopt.tasks.examples import Examples

LOSS_PREFIX = "loss."
"""Beginning of the names of what a loss has learned."""
RELEASED = ROOT / "results" / "weights"


@dataclass(frozen=True, eq=False)
class Theta:
    """A pre-trained network with its loss.

    Attributes:
        network: in evaluation mode.
        loss: what fine-tuning follows; what it learned in training is frozen.
        digest: identity of all weights, see `weights_digest`.
        facts: what is known of the training, JSON-able.
    """

    network: Any
    loss: Loss
    digest: str
    facts: Mapping[str, Any]

    @property
    def cost(self) -> NetworkCost:
        """What the training cost, if a network method did it; nothing if not."""
        facts = self.facts
        if "gradient_steps" not in facts:
            return NetworkCost()
        return NetworkCost(
            facts["queries"], facts["gradient_steps"], facts["seconds"], facts["notes"]
        )


def half_weights(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a state whose matrices and kernels are float16, to be small on disk.

    The rounded weights are theta: all fine-tuning starts from them.
    """
    return {
        name: tensor.half().contiguous()
        if tensor.ndim > 1
        else tensor.contiguous().clone()
        for name, tensor in state.items()
    }


def weights_digest(state: dict[str, Tensor]) -> str:
    """Return the sha256 of names, types and bytes of a state, in hexadecimal.

    The heading has the format that the digests in released records were made with.
    """
    return state_digest(state, heading="{name}{dtype}{shape}")


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
        facts: what is known of the training.
    """
    trained = network.state_dict()
    state = _with_loss(half_weights({k: v.cpu() for k, v in trained.items()}), loss)
    network.load_state_dict(parts(state)[0])
    place = next(network.parameters()).device
    made = {
        "weights": weights_digest(state),
        "environment": environment() | {"device": device_name(place)},
    }
    judged = {name: round(value, 6) for name, value in judge(network).items()}
    return Artifact(state, facts | made | judged)


def _with_loss(state: dict[str, Tensor], loss: Loss) -> dict[str, Tensor]:
    if not isinstance(loss, nn.Module):
        return state
    learned = {
        f"{LOSS_PREFIX}{name}": value.cpu().clone()
        for name, value in loss.state_dict().items()
        if isinstance(value, Tensor)
    }
    return state | learned


def parts(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of the network, and those of its loss."""
    of_network, of_loss = dict[str, Tensor](), dict[str, Tensor]()
    for name, tensor in tensors.items():
        part = of_loss if name.startswith(LOSS_PREFIX) else of_network
        part[name.removeprefix(LOSS_PREFIX)] = tensor
    return of_network, of_loss


def assembled(
    network: nn.Module, loss: Loss, made: Artifact, name: str, kind: str
) -> Theta:
    """Return network and loss as they were kept, frozen, where runs are made.

    Args:
        network: gets the weights that were kept.
        loss: gets what was learned.
        made: what is kept of the training.
        name: name of the network, for messages.
        kind: name of the folder it is kept in, for messages.

    Raises:
        DataError: if the weights do not fit, or are not finite.
    """
    own, learned = parts(made.tensors)
    try:
        restore(network, own, name)
    except DataError as error:
        raise DataError(
            f"{error}; run `./reproduce.sh cache clear {kind}`, and restore "
            "results/weights with git"
        ) from error
    if isinstance(loss, nn.Module):
        loss.load_state_dict(learned)
        # In evaluation mode a loss remembers no mini-batch.
        loss.requires_grad_(False).eval().to(device())
    if isinstance(loss, RowLoss):
        loss.finish()
    digest = weights_digest(made.tensors)
    return Theta(network.eval().to(device()), loss, digest, made.facts)


def freeze(network: nn.Module, names: Sequence[str]) -> None:
    """Keep the weights of some modules as they are.

    Args:
        network: changed in place.
        names: names of modules.

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


def release(name: str, digest: str, spec: dict[str, Any], artifact: Artifact) -> Path:
    """Write a network and its record to where users find them.

    Args:
        name: name of the network, and of its files.
        digest: identity of its specification.
        spec: the specification, for the record.
        artifact: weights and facts.

    Raises:
        ConfigError: if a network of another tier or recipe is released by that name.
    """
    path = RELEASED / f"{name}.safetensors"
    if path.exists() and _identity(path) != digest:
        raise ConfigError(
            f"{path.name} holds a network of another recipe; expected that of "
            f"{digest[:16]}, so move it away first"
        )
    record = {"spec": spec, **artifact.facts}
    write_atomically(path, save(artifact.tensors, {"spec": digest}))
    text = json.dumps(record, indent=1, sort_keys=True)
    write_atomically(path.with_suffix(".json"), f"{text}\n".encode())
    return path


def read_released(name: str, digest: str) -> Artifact | None:
    """Return a released network, None if there is none of exactly this specification.

    Raises:
        DataError: if its weights are not those its record names, or it has none.
    """
    path = RELEASED / f"{name}.safetensors"
    if not path.exists():
        return None
    facts = _facts(path)
    return _checked(path, facts) if digest_of(facts["spec"]) == digest else None


def released_costs() -> dict[str, tuple[float, int]]:
    """Return the seconds of training and the bytes of each released network, by name.

    Raises:
        DataError: if a record is missing or damaged.
    """
    found = {}
    for path in sorted(RELEASED.glob("*.safetensors")):
        size = path.stat().st_size + path.with_suffix(".json").stat().st_size
        found[path.stem] = (float(_facts(path)["seconds"]), size)
    return found


def released_problems(folder: Path = RELEASED) -> list[str]:
    """Return what is wrong with released networks, one sentence each.

    Args:
        folder: where the networks are.
    """
    problems = []
    for path in sorted(folder.glob("*.safetensors")):
        try:
            _checked(path, _facts(path))
        except DataError as error:
            problems.append(str(error))
    return problems


def _facts(path: Path) -> dict[str, Any]:
    """Return the record of a network, which describes the network beside it.

    Raises:
        DataError: if there is none, it is damaged, or it is that of another network.
    """
    record = path.with_suffix(".json")
    if not record.exists():
        raise DataError(f"{path.name} needs its record {record.name} beside it")
    try:
        facts: dict[str, Any] = json.loads(read_text(record))
        described, _ = digest_of(facts["spec"]), facts["weights"]
    except (MetricOptError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{record.name} is not a record of a network; restore it with git"
        ) from error
    if _identity(path) != described:
        raise DataError(
            f"{path.name} must hold the network that {record.name} describes; "
            "restore both with git"
        )
    return facts


def _checked(path: Path, facts: dict[str, Any]) -> Artifact:
    """Return a network whose weights are those of its record.

    Raises:
        DataError: if they are not.
    """
    tensors = read_tensors(path).tensors
    expected, found = facts["weights"], weights_digest(tensors)
    if found != expected:
        raise DataError(
            f"{path.name} must hold the weights {expected}, got {found}; "
            "restore it with git"
        )
    return Artifact(tensors, facts)


def _identity(path: Path) -> str | None:
    """Return the digest of the specification that a network was released with."""
    try:
        return read_metadata(path).get("spec")
    except DataError as error:
        raise DataError(
            f"{path.name} is not a complete safetensors file; restore it with git"
        ) from error


def device() -> torch.device:
    """Return where networks are trained and run: a GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")

"""Files of weights: read without running code, and fitted to a network."""

import io
import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_safetensors
from torch import Tensor, nn

from benchmarks.networks.pretrained import Pretrained
from metricopt.errors import DataError

SUFFIXES = (".safetensors", ".pth", ".pt")
"""Of the formats that can be read."""

COUNTER = ".num_batches_tracked"
NAMED = 3
"""How many tensors of each kind a message names."""


def read_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU; none of its code runs.

    Args:
        path: of the file; its suffix tells the format, and messages name it.
        content: of the file.

    Raises:
        DataError: if it is damaged, or holds anything but tensors by name.
    """
    if path.suffix == ".safetensors":
        try:
            return read_safetensors(content)
        except SafetensorError as error:
            raise DataError(f"{path} is no safetensors file: {error}") from error
    try:
        # Tensors alone: any other pickle could run code of whoever made it.
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise DataError(
            f"{path} is refused: expected a checkpoint of torch with tensors alone, "
            "got a damaged file or one that may run code; save a state_dict, or "
            "safetensors"
        ) from error
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor)
        for name, value in state.items()
    ):
        raise DataError(
            f"{path} must hold tensors by name, as a state_dict does, got "
            f"{type(state).__name__} of other things"
        )
    return state


def assign(network: nn.Module, state: dict[str, Tensor], file: str) -> None:
    """Copy a state into a network; it may lack what was added, nothing else.

    Args:
        network: changed in place, if everything fits; see `Pretrained`.
        state: tensors by name; what has no counterpart in the network is left out.
        file: what the message calls the state.

    Raises:
        DataError: if names or shapes differ; the message tells the first of each kind.
    """
    own, offered = network.state_dict(), pretrained_of(network)
    left_out = _inside(offered.left_out if offered else ())
    added = _inside(offered.added if offered else ())
    given = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith(left_out)
        # Frozen batch norm counts no mini-batches.
        and (name in own or not name.endswith(COUNTER))
    }
    # Old weights lack the counters, which nothing uses.
    needed = {n for n in own if not n.startswith(added) and not n.endswith(COUNTER)}
    problems = {
        "missing": needed - given.keys(),
        "unknown": given.keys() - own.keys(),
        "of another shape": {
            f"{n} {tuple(given[n].shape)} for {tuple(own[n].shape)}"
            for n in own.keys() & given.keys()
            if given[n].shape != own[n].shape
        },
    }
    told = [f"{len(n)} {kind} ({_first(n)})" for kind, n in problems.items() if n]
    if told:
        raise DataError(
            f"{file} does not fit the network: expected its {len(own)} tensors by "
            f"name, got {'; '.join(told)}"
        )
    network.load_state_dict(given, strict=False)


def pretrained_of(network: nn.Module) -> Pretrained | None:
    """Return what torchvision offers for a network; None if nothing."""
    found: Pretrained | None = getattr(network, "pretrained", None)
    return found


def _inside(modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in modules)


def _first(names: set[str]) -> str:
    shown = sorted(names)[:NAMED]
    return ", ".join(shown) + (", ..." if len(names) > NAMED else "")

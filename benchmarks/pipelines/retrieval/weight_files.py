"""Files of weights: read without running code, and fitted to a network."""

import io
import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_safetensors
from torch import Tensor

from benchmarks.networks.embedding.contract import EmbeddingNetwork
from metricopt.errors import DataError

SUFFIXES = (".safetensors", ".pth", ".pt")
"""Of the formats that can be read."""

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


def assign(network: EmbeddingNetwork, state: dict[str, Tensor], file: str) -> None:
    """Copy a state into a network; it may lack the embedding, nothing else.

    Args:
        network: changed in place, if everything fits.
        state: tensors by name; those of torchvision's classifier are left out.
        file: what the message calls the state.

    Raises:
        DataError: if names or shapes differ; the message tells the first of each kind.
    """
    own, left_out = network.state_dict(), ()
    if network.pretrained is not None:
        left_out = (f"{network.pretrained.classifier}.",)
    given = {n: t for n, t in state.items() if not n.startswith(left_out)}
    problems = {
        "missing": {n for n in own.keys() - given.keys() if _is_needed(n)},
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


def _is_needed(name: str) -> bool:
    """Whether weights are incomplete without it; old ones lack unused counters."""
    return not name.startswith("embedding.") and not name.endswith("_batches_tracked")


def _first(names: set[str]) -> str:
    shown = sorted(names)[:NAMED]
    return ", ".join(shown) + (", ..." if len(names) > NAMED else "")

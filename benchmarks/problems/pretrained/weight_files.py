"""Files of weights: read without running code, and fitted to a network."""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from safetensors.torch import load as read_safetensors
from torch import Tensor, nn

from baselines.training.checkpoint import torch_content
from benchmarks.data.files.readers import shown
from benchmarks.networks.contract import Pretrained
from metricopt.errors import DataError

SUFFIXES = (".safetensors", ".pth", ".pt")
"""Endings of the formats that can be read."""

COUNTER = ".num_batches_tracked"
NAMED = 3
"""How many tensors of each kind a message names."""


def read_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU; none of its code runs.

    Args:
        path: where the file is; the suffix tells the format, and messages name it.
        content: bytes of the file.

    Raises:
        DataError: if it is damaged, or holds anything but tensors by name.
    """
    if path.suffix == ".safetensors":
        try:
            return read_safetensors(content)
        except Exception as error:  # safetensors and torch raise many kinds
            raise DataError(f"{path} is no safetensors file: {error}") from error
    try:
        state = torch_content(content)
    except DataError as error:
        raise DataError(
            f"{path} is refused: {error}; save a state_dict, or safetensors"
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
        DataError: if names, shapes or types differ, or a number is not finite; the
            message tells the first of each kind.
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
    _check(own, given, needed, file)
    network.load_state_dict(given, strict=False)


def restore(network: nn.Module, state: dict[str, Tensor], file: str) -> None:
    """Copy into a network exactly what such a network was kept as.

    Args:
        network: changed in place, if everything fits.
        state: tensors by name.
        file: what the message calls the state.

    Raises:
        DataError: see `assign`.
    """
    own = network.state_dict()
    _check(own, state, own.keys(), file)
    network.load_state_dict(state)


def pretrained_of(network: nn.Module) -> Pretrained | None:
    """Return what torchvision offers for a network; None if nothing."""
    found: Pretrained | None = getattr(network, "pretrained", None)
    return found


def _check(
    own: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    needed: Collection[str],
    file: str,
) -> None:
    """Check that a state fits a network.

    Args:
        own: the network's state.
        given: the other state.
        needed: names it must hold.
        file: what the message calls it.
    """
    both = own.keys() & given.keys()
    alike = {name for name in both if own[name].shape == given[name].shape}
    usable = {name for name in alike if _is_plain(given[name], own[name])}
    problems = {
        "missing": set(needed) - given.keys(),
        "unknown": given.keys() - own.keys(),
        "of another shape": {
            f"{n} {tuple(given[n].shape)} for {tuple(own[n].shape)}"
            for n in both - alike
        },
        "of another type": {
            f"{n} {given[n].dtype} for {own[n].dtype}" for n in alike - usable
        },
        "not finite": {
            n for n in usable if not bool(given[n].to(own[n].dtype).isfinite().all())
        },
    }
    told = [f"{len(n)} {kind} ({_first(n)})" for kind, n in problems.items() if n]
    if told:
        raise DataError(
            f"{file} does not fit the network: expected its {len(own)} tensors by "
            f"name, got {'; '.join(told)}"
        )


def _is_plain(given: Tensor, own: Tensor) -> bool:
    """Return whether a tensor can be copied to another without a loss of meaning."""
    kinds = {each.is_floating_point() - each.is_complex() for each in (given, own)}
    dense = given.layout is torch.strided and not (given.is_quantized or given.is_meta)
    # A file of half precision may hold its counters so, too.
    return dense and (len(kinds) == 1 or own.ndim == 0)


def _inside(modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in modules)


def _first(names: set[str]) -> str:
    first = ", ".join(map(shown, sorted(names)[:NAMED]))
    return first + (", ..." if len(names) > NAMED else "")

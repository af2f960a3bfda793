"""Write phi to a small file that names the adapter and the theta it belongs to."""

import hashlib
import os
from collections.abc import Mapping

import torch
from safetensors.torch import save
from torch import Tensor, nn

from metricopt.adapters.base import NetworkAdapter
from metricopt.errors import ConfigError, ShapeError
from metricopt.files import read_own, user_path, write_atomically
from metricopt.reading.outputs import Standard

_FORMAT = "metricopt-phi-1"
LISTED = 3
"""Most entries of theta that a message names."""


def save_phi(
    path: str | os.PathLike[str], phi: Tensor, adapter: NetworkAdapter
) -> None:
    """Write phi, a description of its adapter and a fingerprint of theta to a file.

    The file has a few kilobytes in safetensors format. It is complete or absent: a
    temporary file beside it is flushed to disk, then renamed.

    Args:
        path: the file; an existing one is replaced.
        phi: adapter parameters, shape [d].
        adapter: the adapter that phi belongs to.

    Raises:
        ShapeError: if phi is not [d].
    """
    if tuple(phi.shape) != (adapter.size,):
        raise ShapeError(
            f"phi must have shape [{adapter.size}], got {tuple(phi.shape)}"
        )
    tensors = {"phi": phi.detach().cpu().contiguous()}
    write_atomically(user_path(path), save(tensors, metadata=_metadata(adapter)))


def load_phi(path: str | os.PathLike[str], adapter: NetworkAdapter) -> Tensor:
    """Read phi back, for the same adapter on the same theta.

    `finetune` shifts predicted values in units of the spread of their targets. For an
    adapter that was made without these, as by `auto_adapter`, they become units of the
    outputs; of a network of float64, such a phi is float64, too.

    Args:
        path: a file written by `save_phi`.
        adapter: the adapter that phi is for.

    Returns:
        Adapter parameters, shape [d], on the device of the network.

    Raises:
        ConfigError: if the file is missing, was not written by `save_phi`, or belongs
            to another adapter or other weights; the message names the difference.
    """
    tensors, saved = read_own(user_path(path), "save_phi")
    phi = tensors.get("phi")
    if phi is None:
        raise ConfigError(
            f"{user_path(path)} was not written by save_phi: it holds no phi"
        )
    own = _metadata(adapter)
    plain = adapter.standard is None or adapter.standard.is_plain
    standard = _standard(path, saved) if plain else None
    if standard is not None:
        saved = {key: saved[key] for key in saved if key not in ("centre", "unit")}
    for key in own | saved:  # what only the file names is a difference, too
        before, now = saved.get(key), own.get(key)
        if before != now:
            raise ConfigError(
                f"{path} was saved for {key} {before}, but this adapter has {key} {now}"
            )
    if tuple(phi.shape) != (adapter.size,):
        raise ConfigError(
            f"{path} must hold phi of shape [{adapter.size}], got {tuple(phi.shape)}"
        )
    if not (phi.is_floating_point() and bool(phi.isfinite().all())):
        raise ConfigError(
            f"{path} must hold finite floating-point numbers, got {phi.dtype} or a "
            "number that is not finite; save phi again"
        )
    weight = next(adapter.network.parameters(), phi)
    if standard is not None:  # the same effect without one
        phi = phi.to(torch.promote_types(phi.dtype, weight.dtype), copy=True)
        place, scaled = adapter.parts["offsets"], adapter.parts.get("scales")
        scales = None if scaled is None else phi[scaled].double().exp()
        phi[place] = standard.affine(phi[place], scales)[0].to(phi)
    return phi.to(weight.device)


def _standard(path: object, saved: Mapping[str, str]) -> Standard | None:
    """Return the standard of a saved phi, if it has one."""
    try:
        return Standard.described(saved)
    except ValueError as error:
        raise ConfigError(f"{path} is damaged: {error}; save phi again") from error


def fingerprint(network: nn.Module) -> str:
    """Return the SHA-256 of theta: names, types, shapes and bytes of its state."""
    return state_digest(network.state_dict())


def fingerprints(network: nn.Module) -> dict[str, str]:
    """Return the SHA-256 of every entry of theta, by its name."""
    state = network.state_dict()
    return {name: state_digest({name: value}) for name, value in state.items()}


def changed_entries(network: nn.Module, before: Mapping[str, str]) -> str:
    """Return which entries of theta are not as before, in words; "" if all are."""
    now = fingerprints(network)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    listed = ", ".join(map(repr, names[:LISTED]))
    more = len(names) - LISTED
    return f"{listed} and {more} more" if more > 0 else listed


def state_digest(
    state: Mapping[str, object], heading: str = "{name} {dtype} {shape}\n"
) -> str:
    """Return the SHA-256 of the tensors of a state, in hexadecimal; skip other values.

    The heading is the format of the text hashed before the bytes of each tensor.
    Digests made with another format can be checked with that format only.
    """
    digest = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        if isinstance(value, Tensor):
            shape = tuple(value.shape)
            text = heading.format(name=name, dtype=value.dtype, shape=shape)
            digest.update(text.encode())
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _metadata(adapter: NetworkAdapter) -> dict[str, str]:
    with adapter.detached():
        theta = fingerprint(adapter.network)
    return {"format": _FORMAT} | adapter.describe() | {"theta": theta}

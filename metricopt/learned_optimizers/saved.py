"""A learned optimizer as a file: weights, form, what it was trained on, a digest."""

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.files import read_own, told, user_path, write_atomically
from metricopt.learned_optimizers.contract import LEARNED, LearnedOptimizer, kind_of

FORMAT = "metricopt-learned-optimizer-1"
FACTS = ("kind", "settings", "inputs", "tasks")


class SavedOptimizer(NamedTuple):
    """What a file holds.

    Attributes:
        optimizer: in evaluation mode, on the CPU.
        tasks: what it was trained on, in words.
        digest: identity of weights, form and tasks: SHA-256, hexadecimal.
    """

    optimizer: LearnedOptimizer
    tasks: str
    digest: str


def save_optimizer(
    path: str | os.PathLike[str], optimizer: LearnedOptimizer, *, tasks: str
) -> str:
    """Write an optimizer to a safetensors file, which is complete or absent.

    Args:
        path: where; missing folders are made.
        optimizer: any optimizer whose class is registered.
        tasks: what it was trained on, in words.

    Returns:
        The digest of the file's content.

    Raises:
        ConfigError: if the class is not registered, or nothing is said of the tasks.
    """
    if not tasks:
        raise ConfigError("tasks must say what the optimizer was trained on, got ''")
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in optimizer.state_dict().items()
    }
    facts = {
        "kind": kind_of(optimizer),
        "settings": json.dumps(optimizer.settings(), sort_keys=True),
        "inputs": json.dumps(optimizer.inputs),
        "tasks": tasks,
    }
    digest = _digest(tensors, facts)
    metadata = {"format": FORMAT, **facts, "digest": digest}
    write_atomically(user_path(path), save(tensors, metadata=metadata))
    return digest


def load_optimizer(
    path: str | os.PathLike[str], *, inputs: Sequence[str] | None = None
) -> SavedOptimizer:
    """Read what `save_optimizer` wrote.

    Args:
        path: the file.
        inputs: names of the inputs that the caller provides, in order; None accepts
            any.

    Raises:
        ConfigError: if there is no such file, it was not written by `save_optimizer`,
            was changed since, has other inputs, a horizon below 1, or a kind that is
            not registered.
    """
    path = user_path(path)
    tensors, metadata = read_own(path, "save_optimizer")
    if metadata.get("format") != FORMAT or not metadata.keys() >= {*FACTS, "digest"}:
        raise ConfigError(
            f"{path} must hold what save_optimizer writes, got the format "
            f"{metadata.get('format', 'of another program')}"
        )
    facts = {name: metadata[name] for name in FACTS}
    if _digest(tensors, facts) != metadata["digest"]:
        raise ConfigError(
            f"{path} was changed after it was written: its content has another digest "
            "than it says"
        )
    found = tuple(json.loads(facts["inputs"]))
    if inputs is not None and tuple(inputs) != found:
        raise ConfigError(
            f"{path} holds an optimizer for other inputs: expected "
            f"{', '.join(inputs)}; got {', '.join(found)}"
        )
    optimizer = _made(str(path), facts["kind"], json.loads(facts["settings"]), tensors)
    return SavedOptimizer(optimizer.eval(), facts["tasks"], metadata["digest"])


def _made(
    path: str, kind: str, settings: dict[str, Any], tensors: dict[str, Tensor]
) -> LearnedOptimizer:
    make = LEARNED.get(kind)
    try:
        optimizer = make(**settings)
        optimizer.to(next(iter(tensors.values())).dtype).load_state_dict(tensors)
    except (TypeError, RuntimeError) as error:
        raise ConfigError(
            f"{path} does not fit a learned optimizer {kind!r} of this version: "
            f"{told(error)}"
        ) from error
    return optimizer


def _digest(tensors: dict[str, Tensor], facts: dict[str, str]) -> str:
    """Return the SHA-256 of names, shapes and numbers of tensors, and of facts."""
    sha = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        sha.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        sha.update(value.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()

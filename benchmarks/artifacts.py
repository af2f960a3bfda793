"""Intermediate products, content-addressed: pre-trained networks, value functions.

An artifact is found by the hash of everything that determines it, so rows that need the
same one share it, and a killed run finds what was finished.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from benchmarks.paths import cache_root, write_atomically
from benchmarks.records import canonical


class Artifact(NamedTuple):
    """Tensors by name, and JSON-able facts about them."""

    tensors: dict[str, Tensor]
    facts: dict[str, object]


def get_or_make(kind: str, key: object, make: Callable[[], Artifact]) -> Artifact:
    """Return the artifact of a key, made and stored at the first call.

    Args:
        kind: name of the folder, such as `theta`.
        key: JSON-able; everything that determines the artifact.
        make: makes it.
    """
    path = artifact_path(kind, key)
    stored = _read(path)
    if stored is not None:
        return stored
    made = make()
    tensors = {name: tensor.contiguous() for name, tensor in made.tensors.items()}
    write_atomically(path, save(tensors, {"facts": json.dumps(made.facts)}))
    return made


def artifact_path(kind: str, key: object) -> Path:
    """Return where the artifact of a key is, or would be."""
    digest = hashlib.sha256(canonical(key).encode()).hexdigest()
    return cache_root() / "artifacts" / kind / f"{digest[:32]}.safetensors"


def _read(path: Path) -> Artifact | None:
    """Return a stored artifact; None if there is none, or it is torn."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
            names = file.keys()
            return Artifact({name: file.get_tensor(name) for name in names}, facts)
    except (FileNotFoundError, SafetensorError):
        return None

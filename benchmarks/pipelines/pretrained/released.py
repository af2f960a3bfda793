"""Released weights: networks in the repository, each with its training record."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from benchmarks.pipelines.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.paths import ROOT
from metricopt.errors import ConfigError, DataError
from metricopt.files import write_atomically

RELEASED = ROOT / "results" / "weights"


def release(name: str, digest: str, spec: dict[str, Any], artifact: Artifact) -> Path:
    """Write a network and its record to where users find them.

    Args:
        name: name of the network, and of its files.
        digest: identity of its specification.
        spec: the specification, for the record.
        artifact: its weights and facts.

    Raises:
        ConfigError: if a network of another tier or recipe is released by that name.
    """
    path = RELEASED / f"{name}.safetensors"
    if path.exists() and _released_digest(path) != digest:
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
    record = path.with_suffix(".json")
    if not path.exists() or _released_digest(path) != digest:
        return None
    if not record.exists():
        raise DataError(f"{path.name} needs its record {record.name} beside it")
    try:
        facts = json.loads(record.read_text())
        expected = facts["weights"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{record.name} is not a record of a network; restore it with git"
        ) from error
    tensors = _tensors(path)
    found = weights_digest(tensors)
    if found != expected:
        raise DataError(
            f"{path.name} must hold the weights {expected}, got {found}; "
            "restore it with git"
        )
    return Artifact(tensors, facts)


def _tensors(path: Path) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _released_digest(path: Path) -> str | None:
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
    except SafetensorError as error:
        raise DataError(
            f"{path.name} is not a complete safetensors file; restore it with git"
        ) from error
    return metadata.get("spec")

"""Released weights: networks in the repository, each with its training record."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save

from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import digest_of
from benchmarks.runs.paths import ROOT
from metricopt.errors import ConfigError, DataError, MetricOptError
from metricopt.files import (
    read_metadata,
    read_tensors,
    read_text,
    write_atomically,
)

RELEASED = ROOT / "results" / "weights"


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

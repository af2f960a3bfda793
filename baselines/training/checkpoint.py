"""The state of a training on disk, to continue from after a crash."""

import hashlib
import io
import math
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError
from metricopt.files import write_atomically

ZIPPED = b"PK\x03\x04"
"""How files of `torch.save` begin."""
SHARED = "shared"
"""Folder of trainings that several methods begin with."""


class Resumable(Protocol):
    """What goes on from a state of tensors and plain values."""

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""


class Run(Resumable, Protocol):
    """A training that goes on from a state."""

    optimizer: torch.optim.Optimizer


@dataclass(frozen=True)
class Checkpoint:
    """The state of one training on disk.

    Attributes:
        path: where; missing folders are made.
        key: identity of the training; the state of another one is ignored.
        beside: what else is kept with every state, and put back with it.
    """

    path: Path
    key: str = ""
    beside: tuple[Resumable, ...] = ()

    def write(self, run: Run, hooks: Resumable) -> None:
        """Write the state of a training between two epochs over an earlier one."""
        kept = [each.state() for each in (hooks, *self.beside)]
        write_checkpoint(self.path, self.key, {**run.state(), "beside": kept})

    def resume(self, run: Run, hooks: Resumable) -> None:
        """Let a training go on from its state on disk, if there is one.

        Raises:
            ConfigError: see `TrainingRun.restore`.
            DataError: if the file holds what no such training has written.
        """
        state = read_checkpoint(self.path, self.key)
        if state is None:
            return
        try:
            _check_state(state)
            run.restore(state)
            _check_moments(run.optimizer)
            kept = zip((hooks, *self.beside), state["beside"], strict=True)
            for each, own in kept:
                each.restore(own)
        except ConfigError:
            raise
        except Exception as error:  # what is missing or of another type fails anywhere
            told = " ".join(str(error).split()) or type(error).__name__
            raise DataError(
                f"{self.path} holds no state of this training: {told}; delete it to "
                "begin anew"
            ) from error


class Checkpoints:
    """The states of a method that trains several times: a file for each training.

    A method that was killed is called again, with the same seeds. What it had trained
    to the end it finds here, with the queries and the time that it took; it goes on
    with the training that was cut off. What it does between its trainings it repeats.

    Args:
        folder: where.
        key: identity of the method's training.
        beside: see `Checkpoint`.
        start: identity of what all methods have alike, first weights and mini-batches;
            empty if nothing is known of other methods.
    """

    def __init__(
        self, folder: Path, key: str, *beside: Resumable, start: str = ""
    ) -> None:
        self.folder, self.key, self.beside, self.start = folder, key, beside, start
        self._begun = 0

    def next(self, decided_by: str = "") -> Checkpoint:
        """Return where the next training of the method keeps its state.

        Args:
            decided_by: all that decides it beside the start, if methods that differ
                elsewhere have the very same training. It is then done once for all of
                them: its state lies beside the folder, and stays.
        """
        self._begun += 1
        if decided_by and self.start:
            content = f"{self._begun} {self.start} {decided_by}"
            key = hashlib.sha256(content.encode()).hexdigest()
            path = self.folder.parent / SHARED / f"{key[:16]}.pt"
            return Checkpoint(path, key, self.beside)
        path = self.folder / f"training-{self._begun}.pt"
        return Checkpoint(path, self.key, self.beside)


def write_checkpoint(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write the state of a training, replacing an earlier one.

    Args:
        path: where; missing folders are made.
        key: identity of the training.
        state: what `torch.load` can read with `weights_only`.
    """
    buffer = io.BytesIO()
    torch.save({"key": key, **state}, buffer)
    write_atomically(path, buffer.getvalue())


def read_checkpoint(path: Path, key: str) -> dict[str, Any] | None:
    """Return the state in a checkpoint, on the CPU.

    Args:
        path: where it was written.
        key: identity of the training.

    Returns:
        The state; None if there is no checkpoint of this very training. A damaged one
        counts as none, and a warning names it.
    """
    try:
        content = path.read_bytes()
        found = torch_content(content)
        _check_members(content)
    except FileNotFoundError:
        return None
    except (OSError, DataError) as error:
        warnings.warn(
            f"the checkpoint {path} is damaged, the training begins anew: {error}",
            stacklevel=2,
        )
        return None
    # A state without settings, or what is kept beside, is of an earlier form.
    known = isinstance(found, dict) and {"training", "beside"} <= set(found)
    return found if known and found.get("key") == key else None


def torch_content(content: bytes) -> Any:
    """Return what a file of `torch.save` holds, on the CPU; none of its code runs.

    Raises:
        DataError: if it is damaged, holds more than tensors and plain values, or would
            take more room than the file.
    """
    try:
        if content.startswith(ZIPPED):
            _check_room(content)
        # Tensors alone: any other pickle could run code of whoever made it.
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except DataError:
        raise
    except Exception as error:  # torch and pickle raise many kinds
        raise DataError(
            "expected a checkpoint of torch with tensors alone, got a damaged file or "
            "one that may run code"
        ) from error


def all_finite(weights: Mapping[str, Any]) -> bool:
    """Return whether all numbers of a network's state are finite."""
    tensors = (value for value in weights.values() if isinstance(value, Tensor))
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def _check_room(content: bytes) -> None:
    """Check that a file does not unpack to more than it is; torch packs nothing.

    Raises:
        DataError: if it does.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        size = sum(member.file_size for member in packed.infolist())
    if size > len(content):
        raise DataError(
            f"expected a file of torch, which packs nothing, got {len(content):,} "
            f"bytes that unpack to {size:,}"
        )


def _check_members(content: bytes) -> None:
    """Check every part of a file by the checksum that it was written with.

    Raises:
        DataError: if one is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            damaged = packed.testzip()
    except Exception as error:  # zipfile raises many kinds
        raise DataError(f"it is no file as torch writes it: {error}") from error
    if damaged is not None:
        raise DataError(f"its part {damaged} has another checksum")


def _check_state(state: dict[str, Any]) -> None:
    """Check that a state is one between two epochs, and finite.

    Raises:
        ValueError, KeyError, TypeError: if not.
    """
    losses, epochs = state["losses"], state["training"]["epochs"]
    if not len(losses) == len(state["seconds"]) <= epochs:
        raise ValueError(f"{len(losses)} losses of {epochs} epochs")
    if not all(map(math.isfinite, losses)):
        raise ValueError("a loss that is not finite")
    network, best = state["network"], state["best"]["weights"]
    if _shapes(network) != _shapes(best):
        raise ValueError("two sets of weights of different shapes")
    if not (all_finite(network) and all_finite(best)):
        raise ValueError("weights that are not finite")


def _shapes(weights: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items()}


def _check_moments(optimizer: torch.optim.Optimizer) -> None:
    """Check that what an optimiser keeps of a weight has the shape of the weight.

    Raises:
        ValueError: if not: torch takes any shape until the next step.
    """
    for weight, kept in optimizer.state.items():
        for name, value in kept.items():
            if isinstance(value, Tensor) and value.shape not in (weight.shape, ()):
                raise ValueError(
                    f"{name} of shape {tuple(value.shape)} for weights of "
                    f"{tuple(weight.shape)}"
                )

"""Reading a loader to its end, which has to come, and joining what it gives."""

import math
import os
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from metricopt.errors import DataError

MOST_EXAMPLES = 2**20
"""Examples read of data without a length; with more, it counts as endless."""
MOST_BYTES = 2**33
"""Bytes read of data without a length."""
GIB = 2**30
UNLIKE = ("stack expects each tensor to be equal size", "default_collate: ")
"""What torch says of examples that make no batch."""


def batches_of(loader: DataLoader[Any], name: str) -> Iterator[Any]:
    """Yield the batches of a loader, whose data must end, and fit the memory.

    Data without a length may hold `MOST_EXAMPLES` examples of `MOST_BYTES` together.
    Data with a length may hold twice as many as it says, and fill the memory of the
    machine. What does not fit is refused as soon as the first batch says so.

    Args:
        loader: of the data.
        name: of the split, for messages.

    Raises:
        DataError: if there is more, examples make no batch, or come one by one.
    """
    examples = size = 0
    try:
        for batch in loader:
            _require_batch(batch, name)
            examples += loader.batch_size or 1
            size += sum(getattr(leaf, "nbytes", 0) for leaf in tree_leaves(batch))
            _require_end(_count(loader), examples, size, name)
            yield batch
    except (RuntimeError, TypeError) as error:
        if not any(sign in str(error) for sign in UNLIKE):
            raise
        *_, last = str(error).strip().splitlines()
        raise DataError(
            f"examples of the {name} split must be tensors of one shape, arrays or "
            f"numbers, but they make no batch: {last}"
        ) from error


def joined_batches(parts: Sequence[Tensor], name: str) -> Tensor:
    """Return batches [n, ...] as one tensor [N, ...].

    Raises:
        DataError: if they differ in more than the number of examples.
    """
    shapes = {tuple(part.shape[1:]) for part in parts}
    if len(shapes) > 1:
        some = ", ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise DataError(
            f"examples of the {name} split must have one shape, got {some}; pad or "
            "crop them"
        )
    return torch.cat(list(parts))


def _count(loader: DataLoader[Any]) -> int | None:
    """Return how many examples a loader says it has; None for a stream."""
    try:
        return len(loader) * (loader.batch_size or 1)
    except TypeError:
        return None


def _require_end(count: int | None, examples: int, size: int, name: str) -> None:
    """Raise DataError if there is more than the data says, or than fits.

    Args:
        count: how many examples the data says it has.
        examples: how many were read.
        size: their bytes.
        name: of the split.
    """
    if examples > max(MOST_EXAMPLES, 2 * (count or 0)):
        raise DataError(
            f"the {name} split must come to an end, but goes on after {examples} "
            "examples: cut it, or give the data set a length"
        )
    most = MOST_BYTES if count is None else _memory()
    whole = size * max(1.0, (count or 0) / examples)
    if whole > most:
        raise DataError(
            f"the {name} split must fit into {most / GIB:.3g} GiB, got "
            f"{whole / GIB:.3g} GiB or more: cut it, or pass a LazySplit"
        )


def _memory() -> float:
    """Return the bytes of memory of this machine; infinity if it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _require_batch(batch: object, name: str) -> None:
    """Raise DataError if a batch is one example: its target is one number."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        return
    target = batch[1]
    if isinstance(target, Number) or getattr(target, "ndim", 1) == 0:
        raise DataError(
            f"the {name} split must come in batches [n, ...], got single examples: "
            "give the loader a batch_size"
        )

"""Examples of the user as one split: tensors, a data set, or a loader read once."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from metricopt.errors import DataError
from metricopt.sampling import Split

Examples = Split | tuple[Tensor, Tensor] | Dataset[Any] | DataLoader[Any]
"""Inputs [N, ...] and targets [N], in any of the forms `as_split` reads."""

BATCH_SIZE = 256
"""Examples of a data set collated at a time."""


def as_split(examples: Examples, *, name: str, device: torch.device) -> Split:
    """Read all examples once and keep them on a device.

    What a data set or loader draws at random, such as augmentation, is drawn once and
    frozen: features before the adapter are computed once. A loader that shuffles, or
    drops its last batch, is taken as it comes.

    Args:
        examples: a `Split`, a pair of tensors (inputs, targets), a data set of such
            pairs, or a loader of batches of them.
        name: of the split, for messages.
        device: where the network is.

    Returns:
        The split: inputs [N, ...] and targets [N].

    Raises:
        DataError: if there is no example, the lengths differ, or it is none of these.
    """
    if isinstance(examples, Split):
        inputs, targets = examples.inputs, examples.targets
    elif isinstance(examples, DataLoader):
        inputs, targets = _read(examples, name)
    elif isinstance(examples, Dataset):
        if hasattr(examples, "__len__") and len(examples) == 0:
            raise DataError(f"the {name} split is empty")
        inputs, targets = _read(DataLoader(examples, BATCH_SIZE), name)
    else:
        inputs, targets = _pair(examples, name)
    if inputs.ndim == 0 or targets.ndim == 0:
        raise DataError(
            f"the {name} split needs inputs [N, ...] and targets [N], got shapes "
            f"{list(inputs.shape)} and {list(targets.shape)}"
        )
    if len(inputs) == len(targets) == 0:
        raise DataError(f"the {name} split is empty")
    return Split(inputs.to(device), targets.to(device))


def _read(batches: Iterable[object], name: str) -> tuple[Tensor, Tensor]:
    pairs = [_pair(batch, name) for batch in batches]
    if not pairs:
        raise DataError(f"the {name} split is empty")
    inputs, targets = zip(*pairs, strict=True)
    return torch.cat(inputs), torch.cat(targets)


def _pair(examples: object, name: str) -> tuple[Tensor, Tensor]:
    if isinstance(examples, tuple | list) and len(examples) == 2:
        inputs, targets = examples
        if isinstance(inputs, Tensor) and isinstance(targets, Tensor):
            return inputs, targets
    raise DataError(
        f"the {name} split must be a pair of tensors (inputs, targets), or a data set "
        f"or loader of such pairs, got {_describe(examples)}"
    )


def _describe(examples: object) -> str:
    kind = type(examples).__name__
    if not isinstance(examples, tuple | list):
        return kind
    return f"{kind} of ({', '.join(type(part).__name__ for part in examples[:4])})"

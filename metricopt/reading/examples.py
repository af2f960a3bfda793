"""Reading examples: a loader to its end, which has to come, pairs, and joining them."""

import math
import os
from collections.abc import Iterator, Sequence
from numbers import Number, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, default_collate

from metricopt.errors import DataError
from metricopt.reading.inputs import (
    Inputs,
    as_inputs,
    as_tensor,
    described_inputs,
    form_of,
    formed,
    pair_of,
    require_unmasked,
    tensors_of,
)
from metricopt.reading.outputs import Targets

MOST_EXAMPLES = 2**20
"""Examples read of data without a length; with more, it counts as endless."""
MOST_BYTES = 2**33
"""Bytes read of data without a length."""
GIB = 2**30
UNLIKE = ("stack expects each tensor to be equal size", "default_collate: ")
"""What torch says of examples that make no batch."""


def collated(examples: list[Any]) -> Any:
    """Return examples of a data set as a batch; DataError if arrays hide values."""
    for leaf in tree_leaves(examples):
        require_unmasked(leaf, "examples of a data set")
    return default_collate(examples)


def batches_of(loader: DataLoader[Any], name: str) -> Iterator[Any]:
    """Yield the batches of a loader, whose data must end, and fit the memory.

    Data without a length may hold `MOST_EXAMPLES` examples of `MOST_BYTES` together.
    Data with a length may hold twice as many as it says, and fill the memory of the
    machine. What does not fit is refused as soon as the first batch says so.

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


UNLIKE_SHAPES = (
    "; pad or crop them. Texts in a dict of token numbers with an 'attention_mask' are "
    "padded here"
)
"""What to do about batches of unequal shapes."""


def joined_batches(batches: Sequence[Inputs], name: str) -> Inputs:
    """Return batches, each [n, ...], as one; raise DataError if they do not fit."""
    owner = f"examples of the {name} split"
    parts = _by_place(batches, owner, leading=1, remedy=UNLIKE_SHAPES)
    found: Inputs = formed(form_of(batches[0]), [*map(torch.cat, parts)])
    return found


def stacked(examples: Sequence[Inputs]) -> Inputs:
    """Return inputs of single examples as one, or raise DataError if they differ."""
    parts = _by_place(examples, "inputs of one split")
    found: Inputs = formed(form_of(examples[0]), [*map(torch.stack, parts)])
    return found


def tensor_pair(examples: object, name: str) -> tuple[Inputs, Tensor]:
    """Return inputs and targets of a batch as tensors; raise DataError for others."""
    pair = pair_of(examples)
    if pair is not None:
        inputs, targets = as_inputs(pair[0]), as_tensor(pair[1])
        if inputs is not None and targets is not None:
            return inputs, targets
    remedy = ""
    if pair is not None and _are_names(pair[1]):
        remedy = (
            "; give classes as whole numbers from 0 to C - 1, as scikit-learn's "
            "LabelEncoder makes them of names"
        )
    elif isinstance(examples, tuple | list) and len(examples) > 2:
        remedy = (
            "; give several inputs as ((first, second), targets), and what stands "
            "beside the labels as (inputs, targets, {'name': values})"
        )
    raise DataError(
        f"the {name} split must be a pair of tensors (inputs, targets), or a data set "
        f"or loader of such pairs, got {described_examples(examples)}{remedy}"
    )


def _are_names(targets: object) -> bool:
    """Return whether targets are names, such as those of classes."""
    listed = targets.ravel().tolist() if isinstance(targets, np.ndarray) else targets
    return isinstance(listed, list | tuple) and isinstance([*listed, None][0], str)


def one_input(given: Any) -> Inputs:
    """Return the input of one example; raise DataError if it is none."""
    found = None if isinstance(given, Number) else as_inputs(given)
    if found is not None:
        return found
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            "the input of an example must be a tensor, an array or a number, or a "
            f"tuple or dict of tensors and arrays, got {described_examples(given)}"
        ) from error


def one_tensor(targets: list[Any]) -> Targets:
    """Return targets as one tensor [N, ...], or as they are if they do not fit."""
    if all(isinstance(target, Real) for target in targets):
        return torch.tensor(targets)
    parts = [part for part in map(as_tensor, targets) if part is not None]
    alike = len({(part.shape, part.dtype) for part in parts}) == 1
    return torch.stack(parts) if alike and len(parts) == len(targets) else targets


def described_examples(examples: object) -> str:
    """Return the kinds of the parts of examples, for a message."""
    kind = type(examples).__name__
    if isinstance(examples, dict):
        named = [f"{name}: {type(part).__name__}" for name, part in examples.items()]
        return f"{kind} of ({', '.join(named[:4])})"
    if not isinstance(examples, tuple | list):
        return kind
    return f"{kind} of ({', '.join(type(part).__name__ for part in examples[:4])})"


def _by_place(
    inputs: Sequence[Inputs], owner: str, *, leading: int = 0, remedy: str = ""
) -> list[list[Tensor]]:
    """Return the tensors of inputs of one form and shape, those of one place together.

    Shapes are compared after some leading axes.
    """
    if len({form_of(one) for one in inputs}) > 1:
        unlike = next(one for one in inputs if form_of(one) != form_of(inputs[0]))
        raise DataError(
            f"{owner} must have one form, got {described_inputs(inputs[0])} and "
            f"{described_inputs(unlike)}"
        )
    parts = [list(part) for part in zip(*map(tensors_of, inputs), strict=True)]
    for part in parts:
        shapes = {tuple(one.shape[leading:]) for one in part}
        if len(shapes) > 1:
            shown = list if leading else tuple
            some = ", ".join(str(shown(shape)) for shape in sorted(shapes)[:3])
            raise DataError(f"{owner} must have one shape, got {some}{remedy}")
    return parts


def _count(loader: DataLoader[Any]) -> int | None:
    """Return how many examples a loader says it has; None for a stream."""
    try:
        return len(loader) * (loader.batch_size or 1)
    except TypeError:
        return None


def _require_end(count: int | None, examples: int, size: int, name: str) -> None:
    """Raise DataError if more examples were read than the data says, or than fit.

    Its `count` is None for a stream; `size` is the bytes of the `examples` read.
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
    pair = pair_of(batch)
    if pair is None:
        return
    target = pair[1]
    if isinstance(target, Number) or getattr(target, "ndim", 1) == 0:
        raise DataError(
            f"the {name} split must come in batches [n, ...], got single examples: "
            "give the loader a batch_size"
        )

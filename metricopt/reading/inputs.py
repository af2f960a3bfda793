"""Network inputs: one tensor, a tuple of tensors, or a dict of tensors.

A tuple is passed as `network(*inputs)`, a dict as `network(**inputs)`. Features are
flat tuples of tensors; a `Form` says how inputs are built from them again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from metricopt.errors import DataError, described

Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]
"""What a network is called with; the first axis of every tensor is N."""

Form = int | tuple[str, ...] | None
"""Number of tensors of a tuple, names of a dict in order, or None for one tensor."""

TARGETS = ("labels", "label", "targets")
"""Keys of a dict that hold the targets of its examples."""


def call(network: nn.Module, inputs: Inputs) -> Any:
    """Return what a network returns for inputs."""
    if isinstance(inputs, tuple):
        return network(*inputs)
    return network(**inputs) if isinstance(inputs, dict) else network(inputs)


def call_on_copy(network: nn.Module, inputs: Inputs) -> Any:
    """Return what a network returns for inputs, which it may write on elsewhere."""
    return call(network, each_input(Tensor.clone, inputs))


def form_of(inputs: Inputs) -> Form:
    """Return the form of inputs; the order of the keys of a dict does not matter."""
    if isinstance(inputs, Tensor):
        return None
    return tuple(sorted(inputs)) if isinstance(inputs, dict) else len(inputs)


def tensors_of(inputs: Inputs) -> tuple[Tensor, ...]:
    """Return the tensors of inputs, those of a dict in the order of their names."""
    if isinstance(inputs, Tensor):
        return (inputs,)
    if isinstance(inputs, dict):
        return tuple(inputs[name] for name in sorted(inputs))
    return inputs


def width(form: Form) -> int:
    """Return the number of tensors of inputs of a form."""
    if form is None:
        return 1
    return form if isinstance(form, int) else len(form)


def formed(form: Form, tensors: Sequence[Any]) -> Any:
    """Return inputs of a form: the inverse of `tensors_of`."""
    listed = [tensors[place] for place in range(width(form))]
    if form is None:
        return listed[0]
    return (
        tuple(listed) if isinstance(form, int) else dict(zip(form, listed, strict=True))
    )


def each_input(function: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """Return inputs with a function applied to every tensor of them."""
    found: Inputs = formed(form_of(inputs), [*map(function, tensors_of(inputs))])
    return found


def selected(inputs: Inputs, index: slice | Tensor) -> Inputs:
    """Return the inputs of some examples: a slice, or indices [n] in [0, N), int64."""
    if isinstance(index, slice):
        return each_input(lambda part: part[index], inputs)
    return each_input(lambda part: part.index_select(0, index.to(part.device)), inputs)


def count_of(inputs: Inputs) -> int:
    """Return the number of examples N."""
    return len(tensors_of(inputs)[0])


def described_inputs(inputs: object) -> str:
    """Return dtype and shape of every tensor of inputs, for a message."""
    if isinstance(inputs, dict):
        parts = (f"{name!r}: {described(part)}" for name, part in inputs.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(inputs, tuple):
        return f"({', '.join(map(described, inputs))})"
    return described(inputs)


def require_unmasked(given: object, what: str = "arrays") -> None:
    """Raise DataError if an array of numpy hides values: without the mask they count.

    The name of what it is begins the message.
    """
    masked = int(np.sum(given.mask)) if isinstance(given, np.ma.MaskedArray) else 0
    if masked:
        raise DataError(
            f"{what} must hold numbers, got {masked} masked values: "
            "fill them with numbers, or leave their examples out"
        )


def as_tensor(given: object) -> Tensor | None:
    """Return a tensor, or an array of numbers as one; None for anything else."""
    if not isinstance(given, np.ndarray):
        return given if isinstance(given, Tensor) else None
    require_unmasked(given)
    try:
        # Copied only if torch cannot share it: read-only, or backwards.
        native = given.dtype.newbyteorder("=")
        return torch.from_numpy(np.require(given, native, requirements=["C", "W"]))
    except (TypeError, ValueError):
        return None


def as_inputs(given: object) -> Inputs | None:
    """Return a tensor, or a sequence or mapping of some, as inputs; None for others."""
    if isinstance(given, Mapping):
        named = {name: as_tensor(part) for name, part in given.items()}
        kept = {name: part for name, part in named.items() if part is not None}
        right = len(kept) == len(named) and all(isinstance(name, str) for name in kept)
        return kept if kept and right else None
    if not isinstance(given, tuple | list):
        return as_tensor(given)
    listed = tuple(part for part in map(as_tensor, given) if part is not None)
    return listed if listed and len(listed) == len(given) else None


def pair_of(examples: object) -> tuple[Any, Any] | None:
    """Return inputs and targets of one example or a batch; None if they are no pair.

    It is a pair, or a mapping with one of the keys `TARGETS`; all else in it are the
    inputs.
    """
    if isinstance(examples, Mapping):
        name = next((name for name in TARGETS if name in examples), None)
        if name is None:
            return None
        rest = {key: part for key, part in examples.items() if key != name}
        return rest, examples[name]
    if isinstance(examples, tuple | list) and len(examples) == 2:
        return examples[0], examples[1]
    return None

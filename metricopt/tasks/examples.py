"""Examples: the contract of a split, a lazy split, and the forms users may pass."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from metricopt.errors import DataError
from metricopt.reading.columns import (
    NO_COLUMNS,
    Columns,
    as_columns,
    beside,
    columns_of,
    columns_on,
    joined_columns,
)
from metricopt.reading.examples import (
    batches_of,
    collated,
    described_examples,
    joined_batches,
    one_input,
    one_tensor,
    stacked,
    tensor_pair,
)
from metricopt.reading.inputs import Inputs, as_tensor, each_input, pair_of, tensors_of
from metricopt.reading.outputs import Targets
from metricopt.tasks.padding import padded
from metricopt.tasks.sampling import Split

BATCH_SIZE = 256
"""Examples of a data set collated at a time."""
CPU = torch.device("cpu")


@runtime_checkable
class Examples(Protocol):
    """Labelled examples, in memory (`Split`) or read as they are needed (`LazySplit`).

    Attributes:
        targets: targets of the N examples, all in memory.
    """

    @property
    def targets(self) -> Targets:
        """Targets of the N examples, in memory."""

    def __len__(self) -> int: ...

    def batch(self, index: slice | Tensor) -> Inputs:
        """Return the inputs, each [n, ...], at a slice, or at indices [n] in [0, N)."""


class LazySplit:
    """Examples of a data set that need not fit in memory: inputs are read when asked.

    Unless targets are given, the constructor gathers them by reading every example.
    Numbers, or tensors of one shape, become one tensor. Anything else stays a list,
    such as boxes of objects, for a metric and a loss that take them.

    Limits: inputs must be tensors, arrays or numbers of one shape, or tuples or dicts
    of tensors with one shape in each place. They are read one by one in this process,
    whenever a mini-batch or a metric query needs them. If the network can be cut,
    features are computed once and kept, and a metric query reads nothing. Random
    augmentation is drawn anew at every read.

    Args:
        examples: pairs (input, target), or dicts with "labels", as a map-style
            `Dataset` or a sequence.
        targets: targets of all examples; None to gather them.
        columns: what stands beside the targets, by name: a value for each example.
        device: where batches of inputs, and targets that are a tensor, are put.

    Raises:
        DataError: if there is no example, one is no pair, or the lengths differ.
    """

    def __init__(
        self,
        examples: Dataset[Any] | Sequence[Any],
        *,
        targets: Targets | None = None,
        columns: Columns = NO_COLUMNS,
        device: torch.device = CPU,
    ) -> None:
        if not hasattr(examples, "__len__") or not hasattr(examples, "__getitem__"):
            raise DataError(
                "a lazy split needs a data set with a length and places, got "
                f"{type(examples).__name__}"
            )
        self._examples = examples
        self._count = len(examples)
        self._device = device
        if self._count == 0:
            raise DataError("a split needs at least one example, got an empty one")
        if targets is None:
            targets = one_tensor([self._pair(at)[1] for at in range(self._count)])
        if len(targets) != self._count:
            raise DataError(
                f"a split needs as many inputs as targets, got {self._count} inputs "
                f"and {len(targets)} targets"
            )
        held = as_tensor(targets)
        self.targets = targets if held is None else _owned(_as_labels(held), device)
        beside_targets = as_columns(columns, self._count, "a split")
        self.columns = columns_on(beside_targets, device)

    def __len__(self) -> int:
        return self._count

    def batch(self, index: slice | Tensor) -> Inputs:
        """Read the inputs of some examples, each [n, ...]; DataError if they differ."""
        if isinstance(index, slice):
            places = list(range(*index.indices(self._count)))
        else:
            places = index.tolist()
        inputs = stacked([one_input(self._pair(place)[0]) for place in places])
        return each_input(lambda part: part.to(self._device), inputs)

    def to(self, device: torch.device) -> "LazySplit":
        """Return the same split with batches on a device; nothing is read."""
        return LazySplit(
            self._examples, targets=self.targets, columns=self.columns, device=device
        )

    def _pair(self, place: int) -> tuple[Any, Any]:
        example = self._examples[place]
        pair = pair_of(example)
        if pair is None:
            raise DataError(
                "an example must be a pair (input, target), got "
                f"{described_examples(example)}; a lazy split takes columns as columns="
            )
        return pair


class Relabelled:
    """The same examples with other targets."""

    def __init__(self, examples: Examples, targets: Targets) -> None:
        self._examples, self.targets = examples, targets
        self.columns = columns_of(examples)

    def __len__(self) -> int:
        return len(self._examples)

    def batch(self, index: slice | Tensor) -> Inputs:
        """Return the inputs of some examples, each [n, ...]."""
        return self._examples.batch(index)


def relabelled(examples: Examples, targets: Targets) -> Examples:
    """Return the same examples with other targets."""
    if isinstance(examples, Split) and isinstance(targets, Tensor):
        return Split(examples.inputs, targets, examples.columns)
    return Relabelled(examples, targets)


GivenExamples = (
    Examples
    | tuple[Any, Any]
    | tuple[Any, Any, Mapping[str, Any]]
    | Mapping[str, Any]
    | Dataset[Any]
    | DataLoader[Any]
)
"""Inputs, each [N, ...], and targets [N], in any of the forms `as_split` reads."""


def as_split(examples: GivenExamples, *, name: str, device: torch.device) -> Examples:
    """Read all examples once and keep them on a device.

    Random augmentation of a data set or loader is drawn once and frozen, because
    features before the adapter are computed once. A loader is read as it is, even if it
    shuffles or drops its last batch; it has to come to an end, see `batches_of`. Only
    a `LazySplit` is not read. Integer targets [N] become int64.

    Inputs are one tensor, a tuple or list of tensors for a network with several, or a
    dict of tensors by the names of its arguments. A dict with a key "labels", "label"
    or "targets" is a pair: the other keys are inputs. Arrays of numpy are taken as
    tensors.

    What stands beside the labels is a dict from names to columns, each with a value for
    every example: (inputs, targets, columns). It may be in the third place of a pair,
    of the examples of a data set, or of the batches of a loader.

    Args:
        examples: a `Split`, a pair (inputs, targets), a data set of such pairs, a
            loader of batches of them, or a `LazySplit`.
        name: name of the split, for messages.
        device: where the network is.

    Returns:
        The split: inputs, each [N, ...], targets [N], and columns.

    Raises:
        DataError: if there is no example, the lengths differ, examples make no batch or
            do not end, or it is none of these.
    """
    if isinstance(examples, LazySplit):
        return examples.to(device)
    if isinstance(examples, Split):
        inputs, targets, columns = examples.inputs, examples.targets, examples.columns
    elif isinstance(examples, Examples):
        return examples
    elif isinstance(examples, DataLoader):
        inputs, targets, columns = _read(examples, name)
    elif isinstance(examples, Dataset):
        if hasattr(examples, "__len__") and len(examples) == 0:
            raise DataError(f"the {name} split is empty")
        inputs, targets, columns = _read(
            DataLoader(examples, BATCH_SIZE, collate_fn=collated), name
        )
    else:
        pair, columns = beside(examples)
        inputs, targets = tensor_pair(pair, name)
    for part in tensors_of(inputs):
        _check_counts(part, targets, name)
    held = each_input(lambda part: _owned(part, device), inputs)
    columns = as_columns(columns, len(targets), f"the {name} split")
    return Split(held, _owned(_as_labels(targets), device), columns_on(columns, device))


def _check_counts(inputs: Tensor, targets: Tensor, name: str) -> None:
    """Raise DataError unless there are as many inputs as targets, and some."""
    if inputs.ndim == 0 or targets.ndim == 0:
        raise DataError(
            f"the {name} split needs inputs [N, ...] and targets [N], got shapes "
            f"{list(inputs.shape)} and {list(targets.shape)}"
        )
    if len(inputs) == len(targets) == 0:
        raise DataError(f"the {name} split is empty")
    if len(inputs) != len(targets):
        raise DataError(
            f"the {name} split needs as many inputs as targets, got {len(inputs)} "
            f"inputs and {len(targets)} targets"
        )


def _owned(values: Tensor, device: torch.device) -> Tensor:
    """Return values on a device, such that gradients may be computed with them."""
    return values.clone().to(device) if values.is_inference() else values.to(device)


def _as_labels(targets: Tensor) -> Tensor:
    """Return integer targets [N] as int64, which losses and metrics take."""
    kinds = targets.is_floating_point() or targets.is_complex()
    if targets.ndim != 1 or kinds or targets.dtype == torch.bool:
        return targets
    return targets.long()


def _read(loader: DataLoader[Any], name: str) -> tuple[Inputs, Tensor, Columns]:
    read = [beside(batch) for batch in batches_of(loader, name)]
    if not read:
        raise DataError(f"the {name} split is empty")
    pairs, columns = zip(*read, strict=True)
    given = padded([tensor_pair(pair, name) for pair in pairs])
    inputs, targets = zip(*given, strict=True)
    labels = joined_batches(targets, name)
    assert isinstance(labels, Tensor)
    beside_labels = joined_columns(columns, f"the {name} split")
    return joined_batches(inputs, name), labels, beside_labels

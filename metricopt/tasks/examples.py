"""Examples: the contract of a split, a lazy split, and the forms users may pass."""

import numbers
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from metricopt.errors import DataError
from metricopt.outputs import Targets
from metricopt.tasks.checks.reading import batches_of, joined_batches
from metricopt.tasks.sampling import Split

BATCH_SIZE = 256
"""Examples of a data set collated at a time."""
CPU = torch.device("cpu")


@runtime_checkable
class Examples(Protocol):
    """Labelled examples, in memory (`Split`) or read as they are needed (`LazySplit`).

    Attributes:
        targets: of the N examples, all in memory.
    """

    @property
    def targets(self) -> Targets:
        """Targets of the N examples, in memory."""

    def __len__(self) -> int: ...

    def batch(self, index: slice | Tensor) -> Tensor:
        """Return the inputs of some examples, shape [n, ...].

        Args:
            index: a slice, or indices in [0, N), shape [n], int64.
        """


class LazySplit:
    """Examples of a data set that need not fit in memory: inputs are read when asked.

    Unless targets are given, the constructor gathers them by reading every example.
    Numbers, or tensors of one shape, become one tensor. Anything else stays a list,
    such as boxes of objects, for a metric and a loss that take them.

    Limits: inputs must be tensors, arrays or numbers of one shape. They are read one by
    one in this process, whenever a mini-batch or a metric query needs them. If the
    network can be cut, features are computed once and kept, and a metric query reads
    nothing. Random augmentation is drawn anew at every read.

    Args:
        examples: pairs (input, target), as a map-style `Dataset` or a sequence.
        targets: targets of all examples; None to gather them.
        device: where batches of inputs, and targets that are a tensor, are put.

    Raises:
        DataError: if there is no example, one is no pair, or the lengths differ.
    """

    def __init__(
        self,
        examples: Dataset[Any] | Sequence[Any],
        *,
        targets: Targets | None = None,
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
            targets = _one_tensor([self._pair(at)[1] for at in range(self._count)])
        if len(targets) != self._count:
            raise DataError(
                f"a split needs as many inputs as targets, got {self._count} inputs "
                f"and {len(targets)} targets"
            )
        if isinstance(targets, Tensor):
            targets = _as_labels(targets).to(device)
        self.targets = targets

    def __len__(self) -> int:
        return self._count

    def batch(self, index: slice | Tensor) -> Tensor:
        """Read the inputs of some examples, shape [n, ...].

        Raises:
            DataError: if an example is no pair, or their inputs differ in shape.
        """
        if isinstance(index, slice):
            places = list(range(*index.indices(self._count)))
        else:
            places = index.tolist()
        inputs = [torch.as_tensor(self._pair(place)[0]) for place in places]
        shapes = {tuple(one.shape) for one in inputs}
        if len(shapes) > 1:
            some = ", ".join(map(str, sorted(shapes)[:3]))
            raise DataError(f"inputs of one split must have one shape, got {some}")
        return torch.stack(inputs).to(self._device)

    def to(self, device: torch.device) -> "LazySplit":
        """Return the same split with batches on a device; nothing is read."""
        return LazySplit(self._examples, targets=self.targets, device=device)

    def _pair(self, place: int) -> tuple[Any, Any]:
        example = self._examples[place]
        if not isinstance(example, tuple | list) or len(example) != 2:
            raise DataError(
                f"an example must be a pair (input, target), got {_describe(example)}"
            )
        return example[0], example[1]


def _one_tensor(targets: list[Any]) -> Targets:
    """Return targets as one tensor [N, ...], or as they are if they do not fit."""
    if all(isinstance(target, numbers.Real) for target in targets):
        return torch.tensor(targets)
    if not all(isinstance(target, Tensor) for target in targets):
        return targets
    alike = len({(target.shape, target.dtype) for target in targets}) == 1
    return torch.stack(targets) if alike else targets


class Relabelled:
    """The same examples with other targets.

    Args:
        examples: source of the inputs.
        targets: of the N examples.
    """

    def __init__(self, examples: Examples, targets: Targets) -> None:
        self._examples, self.targets = examples, targets

    def __len__(self) -> int:
        return len(self._examples)

    def batch(self, index: slice | Tensor) -> Tensor:
        """Return the inputs of some examples, shape [n, ...]."""
        return self._examples.batch(index)


def relabelled(examples: Examples, targets: Targets) -> Examples:
    """Return the same examples with other targets."""
    if isinstance(examples, Split) and isinstance(targets, Tensor):
        return Split(examples.inputs, targets)
    return Relabelled(examples, targets)


GivenExamples = Examples | tuple[Tensor, Tensor] | Dataset[Any] | DataLoader[Any]
"""Inputs [N, ...] and targets [N], in any of the forms `as_split` reads."""


def as_split(examples: GivenExamples, *, name: str, device: torch.device) -> Examples:
    """Read all examples once and keep them on a device.

    Random augmentation of a data set or loader is drawn once and frozen, because
    features before the adapter are computed once. A loader is read as it is, even if it
    shuffles or drops its last batch; it has to come to an end, see `batches_of`. Only
    a `LazySplit` is not read. Integer targets [N] become int64.

    Args:
        examples: a `Split`, a pair of tensors (inputs, targets), a data set of such
            pairs, a loader of batches of them, or a `LazySplit`.
        name: of the split, for messages.
        device: where the network is.

    Returns:
        The split: inputs [N, ...] and targets [N].

    Raises:
        DataError: if there is no example, the lengths differ, examples make no batch or
            do not end, or it is none of these.
    """
    if isinstance(examples, LazySplit):
        return examples.to(device)
    if isinstance(examples, Split):
        inputs, targets = examples.inputs, examples.targets
    elif isinstance(examples, Examples):
        return examples
    elif isinstance(examples, DataLoader):
        inputs, targets = _read(examples, name)
    elif isinstance(examples, Dataset):
        if hasattr(examples, "__len__") and len(examples) == 0:
            raise DataError(f"the {name} split is empty")
        inputs, targets = _read(DataLoader(examples, BATCH_SIZE), name)
    else:
        inputs, targets = _tensors(examples, name)
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
    return Split(inputs.to(device), _as_labels(targets).to(device))


def _as_labels(targets: Tensor) -> Tensor:
    """Return integer targets [N] as int64, which losses and metrics take."""
    kinds = targets.is_floating_point() or targets.is_complex()
    if targets.ndim != 1 or kinds or targets.dtype == torch.bool:
        return targets
    return targets.long()


def _read(loader: DataLoader[Any], name: str) -> tuple[Tensor, Tensor]:
    pairs = [_tensors(batch, name) for batch in batches_of(loader, name)]
    if not pairs:
        raise DataError(f"the {name} split is empty")
    inputs, targets = zip(*pairs, strict=True)
    return joined_batches(inputs, name), joined_batches(targets, name)


def _tensors(examples: object, name: str) -> tuple[Tensor, Tensor]:
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

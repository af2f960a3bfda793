"""Examples encoded by an adapter: computed once, if the network can be cut."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter, Features
from metricopt.reading.inputs import tensors_of
from metricopt.reading.outputs import Targets, targets_at
from metricopt.tasks import passes
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import Split


class Encoded(ABC):
    """Examples of one split with the features an adapter computes from them.

    Attributes:
        targets: targets of the N examples.
        kept: whether the features are in memory; if not, they are read when needed.
    """

    targets: Targets
    kept: bool

    def __len__(self) -> int:
        return len(self.targets)

    @property
    @abstractmethod
    def first(self) -> Features:
        """Features of the first example, which give shapes, dtypes and device."""

    @property
    def device(self) -> torch.device:
        """Where the features are."""
        return self.first[0].device

    @abstractmethod
    def batch(self, index: slice | Tensor) -> Features:
        """Return the features of some examples: a slice, or indices [n] in [0, N)."""

    @abstractmethod
    def part(self, index: Tensor) -> "Encoded":
        """Return some examples as a split of their own; index is [n] in [0, N)."""

    def chunks(self, size: int) -> Iterator[Features]:
        """Yield the features of all examples in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.batch(slice(start, start + size))


@dataclass(frozen=True, eq=False)
class EncodedSplit(Encoded):
    """Examples whose features are in memory, for many tasks to share.

    Attributes:
        features: features of the N examples.
        targets: targets of the N examples.
    """

    features: Features
    targets: Targets
    kept = True

    @property
    def first(self) -> Features:
        """Features of the first example."""
        return tuple(part[:1] for part in self.features)

    def batch(self, index: slice | Tensor) -> Features:
        """Return the features of some examples."""
        if isinstance(index, slice):
            return tuple(part[index] for part in self.features)
        places = index.to(self.features[0].device)
        return tuple(_rows(part, places) for part in self.features)

    def part(self, index: Tensor) -> "EncodedSplit":
        """Return some examples as a split of their own."""
        return EncodedSplit(self.batch(index), targets_at(self.targets, index))


@dataclass(frozen=True, eq=False)
class UncutSplit(Encoded):
    """Examples for a network that cannot be cut; inputs are read when needed.

    Attributes:
        examples: source of the inputs, which are the features.
        targets: targets of the N examples.
        places: indices of the N examples in `examples`; None for all in order.
    """

    examples: Examples
    targets: Targets
    places: Tensor | None = None
    kept = False

    @cached_property
    def first(self) -> Features:
        """Features of the first example."""
        return self.batch(slice(1))

    def batch(self, index: slice | Tensor) -> Features:
        """Read the inputs of some examples."""
        chosen = index if self.places is None else self.places[index]
        return tensors_of(self.examples.batch(chosen))

    def part(self, index: Tensor) -> "UncutSplit":
        """Return some examples as a split of their own; nothing is read."""
        places = index if self.places is None else self.places[index]
        return UncutSplit(self.examples, targets_at(self.targets, index), places)

    def chunks(self, size: int) -> Iterator[Features]:
        """Read the inputs of all examples in order, at most `size` at a time."""
        numbers = max(1, sum(part.numel() for part in self.first))
        yield from super().chunks(min(size, max(1, passes.NUMBERS_READ // numbers)))


def encoded(adapter: Adapter, split: Examples | Encoded) -> Encoded:
    """Return a split encoded by the adapter; an encoded split stays as it is."""
    return split if isinstance(split, Encoded) else encode(adapter, split)


@torch.no_grad()
def encode(adapter: Adapter, examples: Examples) -> Encoded:
    """Return all examples with the adapter's features, computed in chunks.

    If the network cannot be cut, the features are the inputs: nothing is copied, and
    examples that are not in memory are not read into it.
    """
    count = len(examples)
    size = passes.encoding_pass(tensors_of(examples.batch(slice(1))))
    parts = []
    for start in range(0, count, size):
        inputs = examples.batch(slice(start, start + size))
        features = adapter.encode(inputs)
        if start == 0 and _are_same(features, tensors_of(inputs)):
            return _uncut(examples)
        # Not channels last: gathering and gradients of channel scales are faster.
        parts.append(tuple(part.contiguous() for part in features))
    whole = tuple(torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return EncodedSplit(whole, examples.targets)


def _rows(features: Tensor, places: Tensor) -> Tensor:
    """Return the rows at `places`; flat ones are copied three times as fast as maps."""
    if features.ndim < 3 or not features.is_contiguous():
        return features.index_select(0, places)
    flat = features.flatten(1).index_select(0, places)
    return flat.view(len(places), *features.shape[1:])


def _are_same(features: Features, inputs: Features) -> bool:
    if len(features) != len(inputs):
        return False
    return all(map(operator.is_, features, inputs))


def _uncut(examples: Examples) -> Encoded:
    if isinstance(examples, Split):
        return EncodedSplit(tensors_of(examples.inputs), examples.targets)
    return UncutSplit(examples, examples.targets)

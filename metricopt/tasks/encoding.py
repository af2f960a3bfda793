"""Examples encoded by an adapter, once if it can be cut, and the sizes of passes."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter, Features
from metricopt.reading.columns import Columns, columns_at, columns_of
from metricopt.reading.inputs import tensors_of
from metricopt.reading.outputs import Targets, targets_at
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import Split

# Examples times rows of phi evaluated in one forward pass: enough to amortise the
# calls, little enough that activations stay in the processor's cache.
EXAMPLES_PER_PASS = 16_384
# For feature maps the limit is on their numbers. On two maps of 64 x 8 x 8 per example
# it is several times as fast as all examples at once. Fewer numbers mean more calls.
# More do not fit the cache, and their memory is allocated anew at every pass.
MAP_NUMBERS_PER_PASS = 2**20
# Examples times rows whose outputs are held at once, for feature maps. Maps are read
# from memory once for all these rows; one read takes longer than one row's arithmetic.
MAP_OUTPUTS_HELD = 2**18

# Limits for encoding. Images have many activations, so they come in smaller chunks than
# rows of a table.
EXAMPLES_ENCODED = 4_096
NUMBERS_ENCODED = 2**17
# A network makes a vector of every token, so a token counts as many numbers. Vectors
# are longer in large networks, where there is more to do for each call.
TOKEN_NUMBERS = 64
# Most numbers of inputs read at once if features are not kept in memory: 128 MB.
NUMBERS_READ = 2**25


def map_examples_per_pass(features: Features) -> int | None:
    """Return how many examples with feature maps fit the cache; None without maps.

    A GPU has no such cache, and small passes would leave it idle.
    """
    maps = [part for part in features if part.ndim > 2 or _are_tokens(part)]
    numbers = sum(map(_numbers, maps))
    if not numbers or features[0].device.type != "cpu":
        return None
    return min(EXAMPLES_PER_PASS, max(1, MAP_NUMBERS_PER_PASS // numbers))


def judging_pass(rows: int, examples: int, features: Features) -> tuple[int, int]:
    """Return how many rows of phi, and how many examples, go through in one pass."""
    limit = map_examples_per_pass(features)
    if limit is None:
        return rows, max(1, EXAMPLES_PER_PASS // rows)
    together = min(rows, max(1, limit // examples))
    return together, max(1, limit // together)


def rows_held(examples: int, features: Features, *, kept: bool) -> int:
    """Return how many rows of phi may have all their outputs in memory at once.

    Fewer if features are not kept in memory: reading them takes even longer.
    """
    long = not kept or map_examples_per_pass(features) is not None
    return max(1, (MAP_OUTPUTS_HELD if long else EXAMPLES_PER_PASS) // examples)


def encoding_pass(inputs: Features) -> int:
    """Return how many examples are encoded at once, by the tensors of some inputs."""
    numbers = max(1, sum(map(_numbers, inputs)))
    return max(1, min(EXAMPLES_ENCODED, NUMBERS_ENCODED // numbers))


def _are_tokens(part: Tensor) -> bool:
    return part.ndim > 1 and part.dtype in (torch.int32, torch.int64)


def _numbers(part: Tensor) -> int:
    """Return how many numbers an example has in a network after its first layer."""
    each = part.shape[1:].numel()
    return TOKEN_NUMBERS * each if _are_tokens(part) else each


class Encoded(ABC):
    """Examples of one split with the features an adapter computes from them.

    Attributes:
        targets: targets of the N examples.
        columns: what stands beside the targets, by name.
        kept: whether the features are in memory; if not, they are read when needed.
    """

    targets: Targets
    columns: Columns
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
        """Return the features at a slice, or at indices [n] in [0, N)."""

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
        columns: what stands beside the targets, by name.
    """

    features: Features
    targets: Targets
    columns: Columns = field(default_factory=dict)
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
        targets, columns = targets_at(self.targets, index), self.columns
        return EncodedSplit(self.batch(index), targets, columns_at(columns, index))


@dataclass(frozen=True, eq=False)
class UncutSplit(Encoded):
    """Examples for a network that cannot be cut; inputs are read when needed.

    Attributes:
        examples: source of the inputs, which are the features.
        targets: targets of the N examples.
        places: indices of the N examples in `examples`; None for all in order.
        columns: what stands beside the targets, by name.
    """

    examples: Examples
    targets: Targets
    places: Tensor | None = None
    columns: Columns = field(default_factory=dict)
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
        targets, columns = targets_at(self.targets, index), self.columns
        return UncutSplit(self.examples, targets, places, columns_at(columns, index))

    def chunks(self, size: int) -> Iterator[Features]:
        """Read the inputs of all examples in order, at most `size` at a time."""
        numbers = max(1, sum(part.numel() for part in self.first))
        yield from super().chunks(min(size, max(1, NUMBERS_READ // numbers)))


def encoded(adapter: Adapter, split: Examples | Encoded) -> Encoded:
    """Return a split encoded by the adapter; an encoded split stays as it is."""
    return split if isinstance(split, Encoded) else encode(adapter, split)


@torch.no_grad()
def encode(adapter: Adapter, examples: Examples) -> Encoded:
    """Return all examples with the adapter's features, computed in chunks.

    If the network cannot be cut, the features are the inputs: nothing is copied, and
    examples that are not in memory are not read into it.
    """
    count, columns = len(examples), columns_of(examples)
    size = encoding_pass(tensors_of(examples.batch(slice(1))))
    parts = []
    for start in range(0, count, size):
        inputs = examples.batch(slice(start, start + size))
        features = adapter.encode(inputs)
        given = tensors_of(inputs)
        same = len(features) == len(given) and all(map(operator.is_, features, given))
        if start == 0 and same:
            if isinstance(examples, Split):
                features = tensors_of(examples.inputs)
                return EncodedSplit(features, examples.targets, columns)
            return UncutSplit(examples, examples.targets, columns=columns)
        # Not channels last: gathering and gradients of channel scales are faster.
        parts.append(tuple(part.contiguous() for part in features))
    whole = tuple(torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return EncodedSplit(whole, examples.targets, columns)


def _rows(features: Tensor, places: Tensor) -> Tensor:
    """Return the rows at `places`; flat ones are copied three times as fast as maps."""
    if features.ndim < 3 or not features.is_contiguous():
        return features.index_select(0, places)
    flat = features.flatten(1).index_select(0, places)
    return flat.view(len(places), *features.shape[1:])

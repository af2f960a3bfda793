"""Splits of labelled examples, and how mini-batches are drawn from them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, described, require_whole
from metricopt.reading.columns import Columns, as_columns
from metricopt.reading.inputs import Inputs, as_inputs, as_tensor, count_of, selected


@dataclass(frozen=True)
class Split:
    """Examples of one split, in memory.

    Attributes:
        inputs: network inputs, each [N, ...].
        targets: labels, shape [N] or [N, ...].
        columns: what stands beside the labels, by name: a value for each example.
    """

    inputs: Inputs
    targets: Tensor
    columns: Columns = field(default_factory=dict)

    def __post_init__(self) -> None:
        inputs, targets = as_inputs(self.inputs), as_tensor(self.targets)
        if inputs is None or targets is None:
            raise DataError(
                "a split needs tensors or arrays as inputs and targets, got "
                f"{described(self.inputs)} and {described(self.targets)}"
            )
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "targets", targets)
        count = count_of(inputs)
        if count != len(self.targets):
            raise DataError(
                f"a split needs as many inputs as targets, got {count} "
                f"inputs and {len(self.targets)} targets"
            )
        if count == 0:
            raise DataError("a split needs at least one example, got an empty one")
        columns = as_columns(self.columns, count, "a split")
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        return count_of(self.inputs)

    def batch(self, index: slice | Tensor) -> Inputs:
        """Return the inputs of some examples, each [n, ...]."""
        return selected(self.inputs, index)


class Sampler(ABC):
    """Draws the n examples of mini-batches, one mini-batch per row."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = require_whole("batch_size", batch_size)
        if self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {batch_size}")

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64."""


def check_places(index: object, count: int) -> None:
    """Raise ConfigError unless a sampler drew places [1, n], int64, of N examples."""
    got = described(index)
    if isinstance(index, Tensor) and index.dtype == torch.int64 and index.numel():
        low, high = (int(bound) for bound in index.aminmax())
        if index.ndim == 2 and len(index) == 1 and low >= 0 and high < count:
            return
        got += f" from {low} to {high}"
    raise ConfigError(
        f"the sampler must draw int64 [rows, n] in [0, {count - 1}], places of the "
        f"{count} train examples, got {got}"
    )


class NaturalSampler(Sampler):
    """Uniform over the examples, with replacement: classes keep their shares."""

    def __init__(self, n_examples: int, batch_size: int) -> None:
        super().__init__(batch_size)
        self.n_examples = n_examples

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64."""
        shape = (rows, self.batch_size)
        return torch.randint(self.n_examples, shape, generator=generator)


class BalancedSampler(Sampler):
    """Every class equally often in every mini-batch, with replacement.

    Raises:
        DataError: if only one class occurs in the targets.
    """

    def __init__(self, targets: Tensor, batch_size: int) -> None:
        super().__init__(batch_size)
        classes, places = targets.unique(return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                "class-balanced mini-batches need at least two classes, "
                f"got only class {classes.tolist()}"
            )
        self.order, starts, counts = _grouped(places)
        slot = torch.arange(batch_size) % len(classes)
        self.counts, self.starts = counts[slot], starts[slot]

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64."""
        uniform = torch.rand(rows, self.batch_size, generator=generator)
        place = (uniform * self.counts).long().minimum(self.counts - 1)
        return self.order[self.starts + place]


class ClassSampler(Sampler):
    """Different classes, and as many different examples of each.

    Classes are equally probable. Examples of a class repeat only if it has fewer than
    `per_class`.

    Args:
        targets: classes of all examples, shape [N].
        batch_size: examples n of one mini-batch.
        per_class: examples of each class in it, a divisor of n.

    Raises:
        ConfigError: if n does not hold two classes or more of `per_class` examples.
        DataError: if there are fewer classes than a mini-batch holds, or only one.
    """

    def __init__(self, targets: Tensor, batch_size: int, per_class: int) -> None:
        super().__init__(batch_size)
        self.per_class = per_class
        self.classes_per_batch = _classes_per_batch(batch_size, per_class)
        self._examples = _grouped(targets.unique(return_inverse=True)[1])
        found, needed = len(self._examples.counts), self.classes_per_batch
        if found < needed:
            raise DataError(
                f"a mini-batch holds {needed} different classes, got examples of "
                f"{found}"
            )

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64, class after class."""
        known = torch.full((rows,), len(self._examples.counts))
        classes = _different(known, self.classes_per_batch, generator)
        return self._examples.draw(classes, self.per_class, generator).flatten(1)


class HierarchicalSampler(Sampler):
    """A `ClassSampler` with half of the classes from each of two super-categories.

    Negatives of one super-category look alike, which makes mini-batches hard. All
    super-categories are equally probable, and so are all classes of one.

    Args:
        targets: classes of all examples, shape [N].
        groups: super-categories of all examples, shape [N], the same for all examples
            of a class.
        batch_size: examples n of one mini-batch.
        per_class: examples of each class in it; 2 `per_class` divides n.

    Raises:
        ConfigError: if n is not a multiple of 2 `per_class`.
        DataError: if the lengths differ, a class is in several super-categories, there
            is only one, or one has fewer classes than a mini-batch takes of it.

    Source: Cakir et al., CVPR 2019, sec. 4.1. Differs: pairs of super-categories are
    drawn for every mini-batch, not gone through.
    """

    def __init__(
        self, targets: Tensor, groups: Tensor, batch_size: int, per_class: int
    ) -> None:
        super().__init__(batch_size)
        self.per_class = per_class
        count = _classes_per_batch(batch_size, per_class)
        if count % 2:
            raise ConfigError(
                "batch_size must be a multiple of 2 per_class for two super-categories,"
                f" got batch_size={batch_size} and per_class={per_class}"
            )
        self.classes_per_group = count // 2
        classes = targets.unique(return_inverse=True)[1]
        self._examples = _grouped(classes)
        self._classes = _grouped(_groups_of(classes, groups))
        self._check_groups()

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64, class after class."""
        known = torch.full((rows,), len(self._classes.counts))
        groups = _different(known, 2, generator)
        classes = self._classes.draw(groups, self.classes_per_group, generator)
        return self._examples.draw(classes, self.per_class, generator).flatten(1)

    def _check_groups(self) -> None:
        counts = self._classes.counts
        if len(counts) < 2:
            raise DataError("expected at least two super-categories, got 1")
        fewest = int(counts.min())
        if fewest < self.classes_per_group:
            raise DataError(
                f"a mini-batch takes {self.classes_per_group} classes of a "
                f"super-category, got one with {fewest}"
            )


class _Grouped(NamedTuple):
    """Members sorted by group: group g owns counts[g] places from starts[g] on."""

    order: Tensor
    starts: Tensor
    counts: Tensor

    def draw(self, groups: Tensor, size: int, generator: torch.Generator) -> Tensor:
        """Return `size` members of each group, shape [..., size]."""
        places = _different(self.counts[groups], size, generator)
        return self.order[self.starts[groups][..., None] + places]


def _grouped(groups: Tensor) -> _Grouped:
    counts = torch.bincount(groups)
    return _Grouped(groups.argsort(stable=True), counts.cumsum(0) - counts, counts)


def _different(counts: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Return random numbers below each count, [..., size], all different if possible.

    Every set of numbers is equally probable. Where a count is less than `size`, all
    numbers below it come, again and again.

    Source: Floyd's algorithm, in Bentley and Floyd, CACM 1987. Differs: nothing.
    """
    kept = counts.clamp(max=size)
    found = counts.new_empty((*counts.shape, size))
    for step in range(size):
        last = counts - kept + step
        uniform = torch.rand(counts.shape, dtype=torch.float64, generator=generator)
        drawn = (uniform * (last + 1)).long().minimum(last)
        taken = (found[..., :step] == drawn[..., None]).any(-1)
        found[..., step] = torch.where(taken, last, drawn)
    return found.gather(-1, torch.arange(size) % kept[..., None])


def _groups_of(classes: Tensor, groups: Tensor) -> Tensor:
    """Return the super-category of each class, numbered from 0, shape [C]."""
    if classes.shape != groups.shape:
        raise DataError(
            f"expected one super-category per example, got {len(groups)} for "
            f"{len(classes)} examples"
        )
    numbers = groups.unique(return_inverse=True)[1]
    pairs: Tensor = torch.stack([classes, numbers]).unique(dim=1)
    if len(pairs[0].unique()) < len(pairs[0]):
        several = int((pairs[0].bincount() > 1).sum())
        raise DataError(
            f"expected all examples of a class in one super-category, got {several} "
            "classes in several"
        )
    return pairs[1]


def _classes_per_batch(batch_size: int, per_class: int) -> int:
    if per_class < 1 or batch_size % per_class or batch_size < 2 * per_class:
        raise ConfigError(
            "batch_size must be a multiple of per_class, for two classes or more, got "
            f"batch_size={batch_size} and per_class={per_class}"
        )
    return batch_size // per_class

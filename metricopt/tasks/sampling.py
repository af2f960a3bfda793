"""Splits of labelled examples, and how mini-batches are drawn from them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, described, require_whole
from metricopt.reading.inputs import Inputs, as_inputs, as_tensor, count_of, selected


@dataclass(frozen=True)
class Split:
    """Examples of one split, in memory.

    Attributes:
        inputs: network inputs, each [N, ...].
        targets: labels, shape [N] or [N, ...].
    """

    inputs: Inputs
    targets: Tensor

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

    def __len__(self) -> int:
        return count_of(self.inputs)

    def batch(self, index: slice | Tensor) -> Inputs:
        """Return the inputs of some examples, each [n, ...]."""
        return selected(self.inputs, index)


class Sampler(ABC):
    """Draws the examples of mini-batches, one mini-batch per row.

    Args:
        batch_size: examples n of one mini-batch.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = require_whole("batch_size", batch_size)
        if self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {batch_size}")

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64."""


def check_places(index: object, count: int) -> None:
    """Check what a sampler drew for one mini-batch.

    Args:
        index: places of examples, shape [1, n], int64.
        count: number N of examples.

    Raises:
        ConfigError: if it is something else, or a place is not in [0, N).
    """
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
        classes, counts = targets.unique(return_counts=True)
        if len(classes) < 2:
            raise DataError(
                "class-balanced mini-batches need at least two classes, "
                f"got only class {classes.tolist()}"
            )
        # Examples sorted by class: class c owns counts[c] places from starts[c] on.
        self.order = torch.argsort(targets, stable=True)
        slot = torch.arange(batch_size) % len(classes)
        self.counts = counts[slot]
        self.starts = (counts.cumsum(0) - counts)[slot]

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        """Return indices of examples, shape [rows, n], int64."""
        uniform = torch.rand(rows, self.batch_size, generator=generator)
        place = (uniform * self.counts).long().minimum(self.counts - 1)
        return self.order[self.starts + place]

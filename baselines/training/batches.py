"""Where the mini-batches of a training come from."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import torch
from torch import Tensor

from baselines.training.team import team
from baselines.validation import labels
from metricopt.errors import ConfigError, require_ranges
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Sampler

WHOLE = slice(None)
MiniBatch = tuple[Tensor, Tensor]
"""Inputs [n, ...] and labels [n]."""


class AugmentedExamples(Protocol):
    """Labelled examples that are changed at random whenever they are trained on."""

    @property
    def targets(self) -> Tensor:
        """Labels of the N examples, shape [N]."""

    def __len__(self) -> int: ...

    def batch(self, index: slice | Tensor) -> Tensor:
        """Return the inputs of some examples as they are, shape [n, ...]."""

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return the inputs of some examples, changed at random, shape [n, ...].

        Args:
            index: the examples of a mini-batch.
            generator: all of it is drawn for, whatever is returned.
            share: the places of it that are returned.
        """


class Batches(ABC):
    """What mini-batches are drawn from; of each this process gets its share.

    Args:
        targets: labels of all training examples, shape [N].
        batch_size: examples n of one mini-batch, at least 2, over all processes.
        balanced: whether every class is equally frequent in a mini-batch.

    Attributes:
        share: places of a mini-batch that this process takes; see `team.Team`.

    Raises:
        ConfigError: if `batch_size` is less than 2, or no multiple of the processes.
    """

    def __init__(self, targets: Tensor, batch_size: int, *, balanced: bool) -> None:
        require_ranges("training", {"batch_size": batch_size}, batch_size=">= 2")
        self.targets = targets
        self.batch_size = batch_size
        self.balanced = balanced
        self.share = team().share(batch_size)

    @property
    def steps_per_epoch(self) -> int:
        """Mini-batches of one epoch, at least 1."""
        return max(1, len(self.targets) // self.batch_size)

    @abstractmethod
    def epoch(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the mini-batches of one epoch.

        What decides which examples they hold is drawn before the first one.
        """

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield that many mini-batches, outside of any epoch."""

    @abstractmethod
    def plain(self, count: int) -> Tensor:
        """Return the inputs of the first examples as they are, shape [count, ...]."""


class SampledBatches(Batches):
    """Mini-batches of a sampler; the places of all their examples are drawn at once.

    Args:
        examples: the training examples.
        batch_size: examples n of one mini-batch, at least 2.
        balanced: whether every class is equally frequent in a mini-batch.
        sampler: draws the examples; None for uniform draws, or balanced ones.
        augment: whether inputs are changed at random, mini-batch by mini-batch; the
            examples are `AugmentedExamples` then.

    Raises:
        ConfigError: if `batch_size` is less than 2 or not that of the sampler, there is
            a sampler for balanced mini-batches, or the examples cannot be augmented.
        DataError: if the mini-batches are balanced and there is one class only.
    """

    def __init__(
        self,
        examples: Examples | AugmentedExamples,
        batch_size: int,
        *,
        balanced: bool = False,
        sampler: Sampler | None = None,
        augment: bool = False,
    ) -> None:
        super().__init__(labels(examples), batch_size, balanced=balanced)
        if augment and not hasattr(examples, "augmented"):
            raise ConfigError(
                "augment=True needs examples with a method `augmented`, got "
                f"{type(examples).__name__}"
            )
        self._examples = examples
        self._augment = augment
        self._sampler = self._usual_sampler() if sampler is None else sampler
        if sampler is not None and (balanced or sampler.batch_size != batch_size):
            raise ConfigError(
                f"a sampler needs balanced=False and its own batch_size, "
                f"{sampler.batch_size}, got balanced={balanced} and {batch_size}"
            )

    def epoch(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the mini-batches of one epoch, about as many examples as there are."""
        return self.draw(self.steps_per_epoch, generator)

    def draw(self, count: int, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield that many mini-batches."""
        drawn = self._sampler.draw(count, generator)
        for places, every in zip(drawn, drawn.to(self.targets.device), strict=True):
            index = every[self.share]
            if self._augment:
                inputs = self._examples.augmented(places, generator, self.share)
                yield inputs, self.targets[index]
            else:
                yield self._examples.batch(index), self.targets[index]

    def plain(self, count: int) -> Tensor:
        """Return the inputs of the first examples as they are, shape [count, ...]."""
        return self._examples.batch(slice(count))

    def _usual_sampler(self) -> Sampler:
        if self.balanced:
            return BalancedSampler(self.targets.cpu(), self.batch_size)
        return NaturalSampler(len(self._examples), self.batch_size)


class PermutedBatches(Batches):
    """Every example at most once in an epoch, augmented, in random order.

    An incomplete last mini-batch is dropped.

    Args:
        examples: the training examples.
        batch_size: examples n of one mini-batch, at least 2.

    Raises:
        ConfigError: if `batch_size` is less than 2 or more than there are examples.
    """

    def __init__(self, examples: AugmentedExamples, batch_size: int) -> None:
        super().__init__(examples.targets, batch_size, balanced=False)
        if len(examples) < batch_size:
            raise ConfigError(
                f"a mini-batch of {batch_size} needs as many training examples, got "
                f"{len(examples)}"
            )
        self._examples = examples

    def epoch(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the mini-batches of one permutation of the examples."""
        order = torch.randperm(len(self._examples), generator=generator)
        used = order[: self.steps_per_epoch * self.batch_size]
        for index in used.split(self.batch_size):
            inputs = self._examples.augmented(index, generator, self.share)
            yield inputs, self.targets[index[self.share].to(self.targets.device)]

    def draw(self, count: int, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield that many mini-batches, of as many permutations as it takes."""
        return islice(self._forever(generator), count)

    def plain(self, count: int) -> Tensor:
        """Return the inputs of the first examples as they are, shape [count, ...]."""
        return self._examples.batch(slice(count))

    def _forever(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        while True:
            yield from self.epoch(generator)

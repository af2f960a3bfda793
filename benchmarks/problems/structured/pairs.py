"""Sentences with their translations, as a translator is trained on and judged by."""

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from baselines.training.batches import WHOLE, MiniBatch, PermutedBatches
from benchmarks.data.translation.contract import Pair
from benchmarks.problems.structured.vocabulary import Vocabulary
from metricopt.errors import DataError
from metricopt.structured.sentences import (
    MASK,
    NOTHING,
    pack_sentences,
    unpacked,
)

POOL = 16
"""Mini-batches whose sentences are sorted by length together."""


class SentencePairs:
    """Pairs of sentences in pieces; all in memory.

    They are examples in the sense of `metricopt.tasks.examples.Examples`. Targets are
    references that `metricopt.structured.sentences` packs. Inputs of pairs to learn
    from give the length of the reference, and all its pieces are hidden; others give
    nothing, and the network writes the sentence.

    Args:
        pairs: the pairs.
        vocabulary: pieces of both languages.
        length: most pieces L; what exceeds it is cut.
        learnable: whether they are to learn from. Longer ones are left out then.

    Attributes:
        targets: packed sentences.
        pairs: those that are kept.
        vocabulary: pieces of both languages.

    Raises:
        DataError: if no pair is left.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        vocabulary: Vocabulary,
        length: int,
        *,
        learnable: bool = False,
    ) -> None:
        sources, targets = (
            vocabulary.encoded([pair[side] for pair in pairs]) for side in (0, 1)
        )
        kept = [
            at
            for at, both in enumerate(zip(sources, targets, strict=True))
            if not learnable or max(map(len, both)) <= length
        ]
        if not kept:
            raise DataError(f"no sentence of {len(pairs)} has {length} pieces or fewer")
        self.pairs = [pairs[at] for at in kept]
        self._length, self._learnable = length, learnable
        self.vocabulary = vocabulary
        self._sources = torch.zeros(len(kept), length, dtype=torch.int64)
        for row, at in zip(self._sources, kept, strict=True):
            own = torch.tensor(sources[at][:length])
            row[: len(own)] = own
        self.targets = pack_sentences(
            [targets[at] for at in kept],
            [pair.target for pair in self.pairs],
            length,
        )

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def lengths(self) -> Tensor:
        """Pieces of source and target together, shape [N]."""
        pieces = unpacked(self.targets, self._length).pieces
        return (self._sources != NOTHING).sum(1) + (pieces != NOTHING).sum(1)

    def to(self, device: torch.device) -> "SentencePairs":
        """Return the same pairs on a device."""
        moved = copy.copy(self)
        moved._sources = self._sources.to(device)
        moved.targets = self.targets.to(device)
        return moved

    def first(self, count: int | None) -> "SentencePairs":
        """Return the first pairs; all of them for None."""
        kept = copy.copy(self)
        kept._sources, kept.targets = self._sources[:count], self.targets[:count]
        kept.pairs = self.pairs[:count]
        return kept

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return inputs as they are, int64, shape [n, 3, L]."""
        if isinstance(index, Tensor):
            index = index.to(self._sources.device)
        sources = self._sources[index]
        if not self._learnable:
            nothing = torch.zeros_like(sources)
            return torch.stack([sources, nothing, nothing], 1)
        pieces = unpacked(self.targets[index], self._length).pieces
        return _inputs(sources, pieces, pieces != NOTHING)

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return inputs of pairs to learn from, of whose pieces some are hidden.

        Of n pieces, any number from 1 to n is as likely.

        Args:
            index: which pairs, shape [n].
            generator: on the CPU.
            share: the places of them that are returned.

        Source: Ghazvininejad et al., EMNLP 2019.
        """
        drawn = torch.rand(len(index), generator=generator)[share]
        order = torch.rand(len(index), self._length, generator=generator)[share]
        places = index[share].to(self._sources.device)
        pieces = unpacked(self.targets[places], self._length).pieces
        there = (pieces != NOTHING).cpu()
        count = 1 + (drawn * there.sum(1)).long()
        ranks = order.masked_fill(~there, 2.0).argsort(1).argsort(1)
        hidden = (ranks < count[:, None]).to(pieces.device)
        return _inputs(self._sources[places], pieces, hidden)


class SentenceBatches(PermutedBatches):
    """Every pair at most once in an epoch, those of about one length together.

    Args:
        examples: pairs to learn from.
        batch_size: pairs of one mini-batch, at least 2.
    """

    def __init__(self, examples: SentencePairs, batch_size: int) -> None:
        super().__init__(examples, batch_size)
        self._lengths = examples.lengths.cpu()

    def epoch(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the mini-batches of one permutation of the pairs."""
        order = torch.randperm(len(self._lengths), generator=generator)
        used = order[: self.steps_per_epoch * self.batch_size]
        sorted_ = torch.cat(
            [
                pool[self._lengths[pool].argsort(stable=True)]
                for pool in used.split(POOL * self.batch_size)
            ]
        )
        every = sorted_.split(self.batch_size)
        for at in torch.randperm(len(every), generator=generator).tolist():
            index = every[at]
            inputs = self._examples.augmented(index, generator, self.share)
            yield inputs, self.targets[index[self.share].to(self.targets.device)]


def _inputs(sources: Tensor, pieces: Tensor, hidden: Tensor) -> Tensor:
    """Return sources, what is given of the target, and what is hidden, [n, 3, L]."""
    asked = pieces.masked_fill(~hidden, NOTHING)
    return torch.stack([sources, pieces.masked_fill(hidden, MASK), asked], 1)

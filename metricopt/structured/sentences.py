"""Sentences in pieces, and what a network that writes all places at once says of them.

A piece is a part of a word, by number. A network answers with a length and L pieces.
To be small, outputs list K of its candidates at every place instead of all, and spell
the one that it decides on: shape [N, 1 + L, 2, K + 8]. The list is log-probabilities
and the numbers that they are of. First come the mean over all candidates, which is of
no number, and the candidate that a training asks for; then the best ones, the best
first. Behind the list stand the 16 characters of the decided piece, 0 behind them.
Place 0 is the length.

Targets are packed in one tensor of whole numbers, [N, L + A]: the pieces of the
reference, and the characters of its text, 0 behind both.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metricopt.errors import DataError, ShapeError

NOTHING, UNKNOWN, MASK = 0, 1, 2
"""Numbers of no piece, of a character outside of the vocabulary, of a hidden piece."""
RESERVED = 3
"""Number of the first piece that has a text."""
SPELLED = 16
"""Most characters of a piece."""
NONE = -1
"""Number of what is no candidate."""
FAR = -20.0
"""Log-probability of what is out of the question."""
LEAST = 3
"""Fewest candidates K in a list: mean, asked for, best."""


class Sentences(NamedTuple):
    """Packed sentences, taken apart.

    Attributes:
        pieces: of the references, NOTHING behind them, shape [..., L].
        codes: code points of the references, 0 behind them, shape [..., A].
    """

    pieces: Tensor
    codes: Tensor


def pack_sentences(
    numbers: Sequence[Sequence[int]], references: Sequence[str], length: int
) -> Tensor:
    """Return sentences in one tensor, int64, shape [N, L + A].

    Args:
        numbers: pieces of every reference; those beyond the length are left out.
        references: text of every reference, which is kept whole.
        length: most pieces L.

    Raises:
        ShapeError: if the numbers of sentences differ.
        DataError: if a reference is empty, or a number is none of a piece.
    """
    if len(numbers) != len(references):
        raise ShapeError(
            f"sentences need pieces for every reference, got {len(numbers)} lists for "
            f"{len(references)}"
        )
    packed = torch.zeros(len(numbers), length, dtype=torch.int64)
    for row, own, text in zip(packed, numbers, references, strict=True):
        if not text.strip() or not own:
            raise DataError("a reference must be a sentence, got an empty one")
        if not all(number == UNKNOWN or number >= RESERVED for number in own):
            raise DataError(
                f"pieces must be {UNKNOWN}, or {RESERVED} or more, got {list(own)}"
            )
        row[: len(own)] = torch.tensor(own[:length])
    return torch.cat([packed, coded(references)], 1)


def coded(texts: Sequence[str], most: int | None = None) -> Tensor:
    """Return the code points of texts, 0 behind them, int64, shape [N, A].

    Args:
        texts: the texts.
        most: A; by default the longest text.
    """
    width = max(map(len, texts), default=0) if most is None else most
    found = torch.zeros(len(texts), width, dtype=torch.int64)
    for row, text in zip(found, texts, strict=True):
        row[: len(text)] = torch.tensor([*map(ord, text)])
    return found


def texts_of(codes: Tensor) -> list[str]:
    """Return the texts of code points [N, A], without zeros."""
    rows = codes.long().cpu().tolist()
    return ["".join(chr(code) for code in row if code) for row in rows]


def are_sentences(targets: Any) -> bool:
    """Return whether targets are packed sentences [N, L + A]."""
    if not isinstance(targets, Tensor) or targets.dtype != torch.int64:
        return False
    return targets.ndim == 2 and targets.shape[1] > 1


def unpacked(targets: Tensor, length: int) -> Sentences:
    """Return packed sentences [..., L + A] taken apart.

    Args:
        targets: packed.
        length: most pieces L.

    Raises:
        ShapeError: if they are of another length.
    """
    if targets.shape[-1] <= length:
        raise ShapeError(
            f"packed sentences of {targets.shape[-1]} numbers are not of outputs with "
            f"{length} places"
        )
    return Sentences(targets[..., :length], targets[..., length:])


def listed(log_p: Tensor, asked: Tensor, count: int, first: int = 0) -> Tensor:
    """Return the lists that say most of log-probabilities, shape [..., 2, K].

    Args:
        log_p: of all candidates, shape [..., V].
        asked: number that is listed in any case, `NONE` for none, shape [...].
        count: candidates K that are listed; at most 2 + V are.
        first: number of the first candidate.
    """
    best = log_p.topk(min(count - 2, log_p.shape[-1]))
    place = (asked - first)[..., None]
    own = log_p.gather(-1, place.clamp_min(0)).masked_fill(place < 0, FAR)
    values = torch.cat([log_p.mean(-1, keepdim=True), own, best.values], -1)
    asked = asked[..., None]
    numbers = torch.cat([torch.full_like(asked, NONE), asked, best.indices + first], -1)
    return torch.stack([values, numbers.to(values)], -2)


def certain(numbers: Tensor, count: int) -> Tensor:
    """Return the lists that say numbers [...] for certain, shape [..., 2, K]."""
    found = torch.full((*numbers.shape, 2, count), FAR, device=numbers.device)
    found[..., 0, :2], found[..., 1, :] = 0.0, NONE
    found[..., 1, 1] = numbers.to(found)
    return found


def spelled(lists: Tensor, texts: Tensor | None) -> Tensor:
    """Return lists with the text of what they decide on, shape [..., 2, K + 8].

    Args:
        lists: shape [..., 2, K].
        texts: code points of every piece, shape [V, 16]; None where numbers have none.
    """
    if texts is None:
        codes = lists.new_zeros(*lists.shape[:-2], SPELLED)
    else:
        codes = texts[decided(lists)].to(lists)
    return torch.cat([lists, codes.unflatten(-1, (2, SPELLED // 2))], -1)


def lists(outputs: Tensor) -> Tensor:
    """Return the lists of outputs [..., 2, K + 8], shape [..., 2, K]."""
    return outputs[..., : -SPELLED // 2]


def decided(lists: Tensor) -> Tensor:
    """Return the most probable candidates of lists [..., 2, K], int64, [...]."""
    place = lists[..., 0, 1:].argmax(-1, keepdim=True)
    return lists[..., 1, 1:].gather(-1, place)[..., 0].long()


def log_probabilities(lists: Tensor, numbers: Tensor) -> Tensor:
    """Return the log-probabilities of candidates, shape [...].

    One that is not listed counts as the last one that is, which is more probable.

    Args:
        lists: shape [..., 2, K].
        numbers: candidates, shape [...].
    """
    values, known = lists[..., 0, 1:], lists[..., 1, 1:].detach()
    same = known == numbers[..., None].to(known)
    # The first of two, so that all of the slope is in one place of the list.
    place = same.int().argmax(-1, keepdim=True)
    found = values.gather(-1, place)[..., 0]
    return torch.where(same.any(-1), found, values[..., -1].clamp_min(FAR))


def sentences_of(outputs: Tensor) -> list[str]:
    """Return the sentences that outputs [N, 1 + L, 2, K + 8] spell.

    Spaces stand in the texts of pieces.
    """
    codes = outputs[:, 1:, :, -SPELLED // 2 :].flatten(1)
    return [" ".join(text.split()) for text in texts_of(codes)]

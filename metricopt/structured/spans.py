"""Spans of text: where answers begin and end, and what they say.

A network scores every place of its input as the beginning and as the end of an answer,
outputs [N, 2, L]. Targets are packed in one tensor of whole numbers, [N, 2 + L + R A]:
first and last place of the answer, the character at every place (0 where no answer can
be), and R references of A characters, with zeros behind them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metricopt.errors import DataError, ShapeError

REFERENCES = 3
"""References R of a question."""
MOST = 40
"""Most places of an answer."""
FAR = -1e4
"""Score of places where no answer can be."""


class Spans(NamedTuple):
    """Packed spans, taken apart.

    Attributes:
        first, last: places of the answer, shape [...].
        characters: code points, 0 where no answer can be, shape [..., L].
        references: code points, shape [..., R, A].
    """

    first: Tensor
    last: Tensor
    characters: Tensor
    references: Tensor


def pack_spans(
    gold: Sequence[tuple[int, int]],
    characters: Tensor,
    references: Sequence[Sequence[str]],
) -> Tensor:
    """Return spans in one tensor, int64, shape [N, 2 + L + R A].

    Args:
        gold: first and last place of the answer of every question.
        characters: code points at the places of the input, 0 where no answer can be,
            int64, shape [N, L].
        references: one to three answers of every question.

    Raises:
        ShapeError: if the numbers of questions differ.
        DataError: if a question has no reference, more than three or an empty one, or
            its answer is not where answers can be.
    """
    count, length = characters.shape
    if len(gold) != count or len(references) != count:
        raise ShapeError(
            f"spans need {count} answers and lists of references, one a question, got "
            f"{len(gold)} and {len(references)}"
        )
    most = max((len(text) for own in references for text in own), default=0)
    packed = torch.zeros(count, 2 + length + REFERENCES * most, dtype=torch.int64)
    for row, (first, last), own in zip(packed, gold, references, strict=True):
        if not 1 <= len(own) <= REFERENCES or not all(own):
            raise DataError(
                f"a question needs 1 to {REFERENCES} references that are not empty, "
                f"got {list(own)}"
            )
        row[:2] = torch.tensor([first, last])
        for number, text in enumerate(own):
            start = 2 + length + number * most
            row[start : start + len(text)] = torch.tensor([ord(each) for each in text])
    packed[:, 2 : 2 + length] = characters
    _check_gold(packed, length)
    return packed


def _check_gold(packed: Tensor, length: int) -> None:
    first, last = packed[:, 0], packed[:, 1]
    inside = (first >= 0) & (first <= last) & (last < length)
    ends = packed[:, 2 : 2 + length].gather(1, packed[:, :2].clamp(0, length - 1))
    wrong = ~(inside & (ends > 0).all(1))
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        raise DataError(
            f"{int(wrong.sum())} answers are not where answers can be, first that of "
            f"question {at}: places {int(first[at])} to {int(last[at])} of {length}"
        )


def are_spans(targets: Any) -> bool:
    """Return whether targets are packed spans [N, 2 + L + R A]."""
    if not isinstance(targets, Tensor) or targets.dtype != torch.int64:
        return False
    return targets.ndim == 2 and targets.shape[1] > 2 + REFERENCES


def unpacked(targets: Tensor, length: int) -> Spans:
    """Return packed spans [..., 2 + L + R A] taken apart.

    Args:
        targets: packed.
        length: places L of the input.

    Raises:
        ShapeError: if they are of inputs of another length.
    """
    rest = targets.shape[-1] - 2 - length
    if rest < REFERENCES or rest % REFERENCES:
        raise ShapeError(
            f"packed spans of {targets.shape[-1]} numbers are not of inputs with "
            f"{length} places"
        )
    characters = targets[..., 2 : 2 + length]
    references = targets[..., 2 + length :].unflatten(-1, (REFERENCES, -1))
    return Spans(targets[..., 0], targets[..., 1], characters, references)


def masked(scores: Tensor, spans: Spans) -> Tensor:
    """Return scores [..., 2, L] that are far down where no answer can be."""
    return scores.masked_fill((spans.characters == 0)[..., None, :], FAR)


def best_spans(scores: Tensor, targets: Tensor, most: int = MOST) -> Tensor:
    """Return first and last place of the best spans, int64, shape [..., 2].

    The best one has the largest sum of the scores of its beginning and its end, among
    spans of at most so many places.

    Args:
        scores: shape [..., 2, L].
        targets: packed spans, [..., 2 + L + R A], as many axes as the scores less one.
        most: most places of a span.
    """
    sums = window_sums(scores, targets, most)
    wide = sums.shape[-1]
    place = sums.flatten(-2).argmax(-1)
    first = place // wide
    return torch.stack([first, first + place % wide], -1)


def window_sums(scores: Tensor, targets: Tensor, most: int = MOST) -> Tensor:
    """Return the sum of both scores of every span, shape [..., L, min(most, L)].

    The axes are the first place and the places behind it; see `best_spans`.
    """
    length = scores.shape[-1]
    kept = masked(scores, unpacked(targets, length))
    wide = min(most, length)
    ends = torch.nn.functional.pad(kept[..., 1, :], (0, wide - 1), value=2 * FAR)
    found: Tensor = kept[..., 0, :, None] + ends.unfold(-1, wide, 1)
    return found


def text(codes: Tensor) -> str:
    """Return the characters of code points [n], without zeros."""
    return "".join(map(chr, codes[codes > 0].tolist()))

"""Statistics of translations: n-grams of pieces that the reference has.

BLEU counts n-grams of words, and no n-gram more often than the reference has it. These
are of pieces, and count every n-gram that the reference has anywhere, so that they are
smooth and of every sentence by itself. Where they do not explain BLEU, a method that
relies on them hands over.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.structured.sentences import (
    FAR,
    NOTHING,
    are_sentences,
    decided,
    lists,
    unpacked,
)

ORDERS = 4
"""Longest n-grams."""
CONFIDENCES = (0.3, 0.5, 0.7, 0.9)
"""Probabilities of the best piece from which on pieces are counted."""
LENGTHS = (8, 16, 24)
"""Pieces of a reference from which on a sentence is of the next class."""
SMALL = 1e-6


@STATISTICS.register("sentences")
@dataclass(frozen=True)
class SentenceStatistics(Statistics):
    """Counts of n-grams, precisions, BLEU of pieces, and shares by confidence, length.

    Smooth ones are expectations: a piece is what the network says with its probability.
    """

    name = "sentences"
    near = "shares"

    @property
    def reads(self) -> Reads:
        """Candidates of pieces."""
        return "sentences"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether targets are packed sentences."""
        return are_sentences(targets)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of outputs [B, N, 1 + L, 2, K + 8] and packed sentences.

        Weights [B, N] are of sentences.
        """
        # Row by row: what compares all places of a sentence is L times as large.
        each = torch.stack([_counts(row, targets, smooth=smooth) for row in outputs])
        if weights is None:
            weights = each.new_ones(1, len(targets))
        shares = weights.to(each).expand(len(each), -1)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(SMALL)
        means = torch.einsum("bn,bnq->bq", shares, each)
        common, every, lengths, classes = means.split(
            [ORDERS, ORDERS, 2, 2 * (len(CONFIDENCES) + len(LENGTHS) + 1)], 1
        )
        precisions = common / every.clamp_min(SMALL)
        own, other = lengths.unbind(1)
        # As BLEU joins its precisions, with its penalty of short sentences.
        logs = precisions.clamp_min(SMALL).log().mean(1)
        penalty = (1 - other / own.clamp_min(SMALL)).clamp_max(0)
        counted, right = classes.chunk(2, 1)
        return {
            "counts": torch.cat([common, lengths], 1),
            "precisions": precisions,
            "bleu of pieces": (logs + penalty).exp()[:, None],
            "shares": torch.cat([precisions, right / counted.clamp_min(SMALL)], 1),
        }


def _counts(outputs: Tensor, targets: Tensor, *, smooth: bool) -> Tensor:
    """Return what every sentence of outputs counts, float64, shape [N, Q].

    Common n-grams and all n-grams by order, both lengths, then pieces and right pieces
    by confidence and by length of the reference.
    """
    outputs = lists(outputs)[:, 1:]
    pieces = unpacked(targets, outputs.shape[1]).pieces
    said = decided(outputs)
    here = said != NOTHING
    chance = _chances(outputs, pieces) if smooth else _equal(said, pieces)
    chance = chance * here[..., None]
    common, every = [], []
    run, whole = chance, here.double()
    for order in range(1, ORDERS + 1):
        if order > 1:
            # n-grams that begin at a place, in both sentences, one piece longer.
            run = run[:, :-1, :-1] * chance[:, order - 1 :, order - 1 :]
            whole = whole[:, :-1] * here[:, order - 1 :]
        # That it is at one place at least of the reference.
        found = 1 - (1 - run).prod(2)
        common.append(found.sum(1))
        every.append(whole.sum(1))
        if order == 1:
            right = found
    lengths = [here.sum(1), (pieces != NOTHING).sum(1)]
    classes = _classes(outputs, here, lengths[1])
    counted = classes.sum(1)
    hits = (classes * right[..., None]).sum(1)
    columns = torch.stack([*common, *every, *lengths], 1)
    return torch.cat([columns, counted, hits], 1)


def _classes(outputs: Tensor, here: Tensor, lengths: Tensor) -> Tensor:
    """Return which places count by confidence and by length, float64, [N, L, Q]."""
    confidence = outputs[..., 0, 1:].amax(-1).exp()
    levels = [confidence >= level for level in CONFIDENCES]
    edges = torch.tensor(LENGTHS, device=lengths.device)
    kind = torch.bucketize(lengths, edges, right=True)[:, None]
    sizes = [(kind == each).expand_as(here) for each in range(len(LENGTHS) + 1)]
    return torch.stack([(one & here).double() for one in [*levels, *sizes]], -1)


def _equal(said: Tensor, pieces: Tensor) -> Tensor:
    """Return whether places say the pieces of the reference, [N, L, L], float64."""
    same = said[:, :, None] == pieces[:, None, :]
    return (same & (pieces != NOTHING)[:, None]).double()


def _chances(outputs: Tensor, pieces: Tensor) -> Tensor:
    """Return probabilities that places say the pieces of the reference, [N, L, L]."""
    values, known = outputs[..., 0, 1:], outputs[..., 1, 1:].detach()
    same = known[:, :, None, :] == pieces[:, None, :, None].to(known)
    # A piece may be listed twice, with the same value.
    found = values[:, :, None, :].masked_fill(~same, 2 * FAR).amax(-1)
    return found.double().exp() * (pieces != NOTHING)[:, None]

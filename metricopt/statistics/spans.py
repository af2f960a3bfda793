"""Statistics of spans: how far the best span overlaps the answer.

F1 of characters follows the overlap, but for references that say it otherwise; BLEU
follows n-grams, which are no function of these.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.structured.spans import MOST, are_spans, unpacked, window_sums

LEVELS = (0.01, 0.25, 0.5, 0.75, 0.99)
"""Overlaps from which on answers are counted."""
SMALL = 1e-12


@STATISTICS.register("spans")
@dataclass(frozen=True)
class SpanStatistics(Statistics):
    """Overlap of the best span with the answer: means, shares, and lengths.

    Smooth ones are expectations, with a span as probable as the exponential of its
    score.
    """

    name = "spans"
    near = "shares"

    @property
    def reads(self) -> Reads:
        """Scores of first and last places."""
        return "spans"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether targets are packed spans."""
        return are_spans(targets)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of scores [B, N, 2, L] and packed spans.

        Weights [B, N] are of questions.
        """
        sums = window_sums(outputs, targets.expand(len(outputs), *targets.shape), MOST)
        flat = sums.flatten(-2)
        if smooth:
            chances = flat.softmax(-1)
        else:
            chances = torch.zeros_like(flat).scatter(-1, flat.argmax(-1)[..., None], 1)
        table = _overlaps(targets, outputs.shape[-1], sums.shape[-1])
        each = torch.einsum("bns,nsq->bnq", chances.double(), table.double())
        if weights is None:
            weights = each.new_ones(1, len(targets))
        shares = weights.double().expand(len(each), -1)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(SMALL)
        means = torch.einsum("bn,bnq->bq", shares, each)
        return {
            "means": means[:, :4],
            "mean overlap": means[:, :1],
            "shares": means[:, 4:],
        }


def _overlaps(targets: Tensor, length: int, wide: int) -> Tensor:
    """Return what every window says of its overlap with the answer, [N, L * wide, Q].

    Overlap as F1 of places, precision, recall, length over that of the answer; then
    whether the overlap reaches every level, and whether first and last place are right.
    """
    spans = unpacked(targets, length)
    first = torch.arange(length, device=targets.device)[:, None]
    last = first + torch.arange(wide, device=targets.device)
    start, end = spans.first[:, None, None], spans.last[:, None, None]
    common = (torch.minimum(last, end) - torch.maximum(first, start) + 1).clamp_min(0)
    own, other = last - first + 1, end - start + 1
    overlap = 2 * common / (own + other)
    reached = [(overlap >= level).float() for level in LEVELS]
    right = [(first == start).expand_as(overlap).float(), (last == end).float()]
    numbers = [overlap, common / own, common / other, own / other, *reached, *right]
    found: Tensor = torch.stack([n.expand_as(overlap) for n in numbers], -1)
    return found.flatten(1, 2)

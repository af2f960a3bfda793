"""Mask-predict: a sentence is written whole, then its least sure pieces again."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import require_ranges
from metricopt.structured.sentences import MASK, NOTHING, RESERVED


@dataclass(frozen=True)
class Passes:
    """How a sentence is written.

    Attributes:
        count: passes T; 1 writes every piece once.
        lengths: lengths that are tried, the most probable ones.
    """

    count: int
    lengths: int

    def __post_init__(self) -> None:
        require_ranges("mask-predict", vars(self), count=">= 1", lengths=">= 1")


Scored = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From targets [M, L] to states [M, L, E] and log-probabilities [M, L, V] of pieces."""


def mask_predict(
    scored: Scored, lengths: Tensor, passes: Passes
) -> tuple[Tensor, Tensor]:
    """Return the states of the sentences that are written, and their lengths.

    Pass t of T hides the L (T - t) / T least sure pieces and writes them again. Of the
    lengths the one counts whose pieces are surest in the mean. The state of a place is
    that of the pass in which its piece was written last.

    Args:
        scored: what a network says; M = N C, the C lengths of a source in a row.
        lengths: C lengths of every source, shape [N, C].
        passes: how many, T.

    Returns:
        States [N, L', E], L' the greatest length that was tried, and lengths [N].

    Source: Ghazvininejad et al., EMNLP 2019.
    """
    flat = lengths.flatten()
    places = torch.arange(int(flat.max()), device=flat.device) < flat[:, None]
    hidden, pieces = places, torch.zeros_like(places, dtype=torch.int64)
    sure = torch.zeros_like(places, dtype=torch.float32)
    states: Tensor | None = None
    for step in range(1, passes.count + 1):
        target = pieces.masked_fill(hidden, MASK).masked_fill(~places, NOTHING)
        new, log_p = scored(target)
        best = log_p.max(-1)
        pieces = torch.where(hidden, best.indices + RESERVED, pieces)
        sure = torch.where(hidden, best.values, sure)
        states = new if states is None else torch.where(hidden[..., None], new, states)
        # Places behind the end are surest of all, so that no other one is spared.
        order = sure.masked_fill(~places, 1.0).argsort(dim=1, stable=True).argsort(1)
        again = flat * (passes.count - step) // passes.count
        hidden = order < again[:, None]
    assert states is not None
    means = (sure * places).sum(1) / flat
    chosen = means.view_as(lengths).argmax(1)
    rows = torch.arange(len(lengths), device=flat.device) * lengths.shape[1] + chosen
    return states[rows], flat[rows]

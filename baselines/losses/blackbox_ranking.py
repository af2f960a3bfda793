"""Losses of ranks, differentiated as a black box.

Source: Rolinek et al., CVPR 2020 (RaMBO), on Vlastelica et al., ICLR 2020; code by the
authors at https://github.com/martius-lab/blackbox-backprop. Differs: sorting is stable;
ranks are multiplied by the length of their sequence, not the number of sequences; the
margin of the AP loss is not multiplied by noise; no earlier mini-batch is remembered.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from metricopt.errors import ShapeError, require_ranges

SMALLEST_DEVIATION = 1e-3
"""Least standard deviation that scores are divided by."""


class Ranker(torch.autograd.Function):
    """Ranks whose gradient compares them with the ranks of perturbed scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lam: float) -> Tensor:
        """Return the normalised ranks."""
        ranks = _ranks(scores)
        ctx.lam = lam
        ctx.save_for_backward(scores, ranks)
        return ranks

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        """Return (rank(s + lam g) - rank(s)) / lam for the upstream gradient g."""
        scores, ranks = ctx.saved_tensors
        perturbed = _ranks(scores + ctx.lam * upstream)
        return (perturbed - ranks) / (ctx.lam + 1e-8), None


def rank(scores: Tensor, lam: float) -> Tensor:
    """Return descending ranks divided by the length: 1 / L for the largest score.

    Of equal scores the later one ranks first.

    Args:
        scores: shape [..., L].
        lam: strength of the interpolation, above 0: how far scores are perturbed along
            the gradient with respect to the ranks. Multiplying a loss by a factor
            therefore does not multiply its gradient by that factor.

    Returns:
        Ranks, shape [..., L], in (0, 1].

    Raises:
        ConfigError: if lam is not above 0.
    """
    require_ranges("a rank", {"lam": lam}, lam="> 0")
    ranks: Tensor = Ranker.apply(scores, lam)
    return ranks


def log_log(excess: Tensor) -> Tensor:
    """Return log(1 + log(1 + x)), the weight of an excess rank x >= 0."""
    return excess.log1p().log1p()


def recall_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    margin: float,
    lam: float,
    weight: Callable[[Tensor], Tensor] = log_log,
) -> Tensor:
    """Return the mean weight of the irrelevant items ahead of each relevant one.

    Args:
        scores: scores of L items for Q queries, shape [..., Q, L].
        relevant: whether an item is relevant, bool, shape [..., Q, L].
        margin: by how much a relevant item has to be ahead to count as ahead.
        lam: strength of the interpolation, see `rank`.
        weight: weight of the number of irrelevant items ahead; weight(0) = 0.

    Returns:
        Losses, shape [...], at least 0; 0 where nothing is relevant.

    Raises:
        ShapeError: if scores and relevance differ in shape.
        ConfigError: if lam is not above 0.
    """
    among_all, among_relevant = _both_ranks(scores, relevant, margin, lam)
    ahead = scores.shape[-1] * (among_all - among_relevant)
    weights = weight(ahead * relevant).sum((-2, -1))
    return weights / relevant.sum((-2, -1)).clamp(min=1)


def ap_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    margin: float,
    lam: float,
    interclass: float = 0.0,
) -> Tensor:
    """Return one minus the mean average precision over the classes.

    Args:
        scores: scores of N examples for C classes, shape [..., N, C].
        relevant: whether an example is of a class, bool, shape [..., N, C].
        margin: by how much a positive has to be ahead to count as ahead.
        lam: strength of the interpolation, see `rank`.
        interclass: share of the average precision of all N C entries in one ranking,
            in [0, 1].

    Returns:
        Losses, shape [...], in [0, 1]. Classes without a positive are left out; the
        loss is 0 where all are.

    Raises:
        ShapeError: if scores and relevance differ in shape.
        ConfigError: if lam is not above 0.
    """
    loss = _mean_imprecision(scores.mT, relevant.mT, margin, lam)
    if interclass == 0:
        return loss
    flat = scores.flatten(-2)[..., None, :], relevant.flatten(-2)[..., None, :]
    return torch.lerp(loss, _mean_imprecision(*flat, margin, lam), interclass)


def standardise(scores: Tensor) -> Tensor:
    """Return scores of mean 0 and deviation 1 over the last two axes.

    Margin and lam are then relative to the spread of the raw logits. Mean and deviation
    count as constants in the gradient. The deviation has a least value, so scores that
    hardly differ are not blown up.
    """
    constant = scores.detach()
    deviation = constant.std((-2, -1), keepdim=True, correction=0)
    centred = scores - constant.mean((-2, -1), keepdim=True)
    return centred / deviation.clamp(min=SMALLEST_DEVIATION)


def _mean_imprecision(
    scores: Tensor, relevant: Tensor, margin: float, lam: float
) -> Tensor:
    among_all, among_relevant = _both_ranks(scores, relevant, margin, lam)
    precisions = (among_relevant / among_all * relevant).sum(-1)
    positives = relevant.sum(-1, dtype=scores.dtype)
    losses = 1 - precisions / (positives + 1e-5)
    present = positives > 0
    return (losses * present).sum(-1) / present.sum(-1).clamp(min=1)


def _both_ranks(
    scores: Tensor, relevant: Tensor, margin: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Return normalised ranks among all and, without gradient, among the relevant."""
    if scores.shape != relevant.shape:
        raise ShapeError(
            f"scores and relevance must have one shape, got {list(scores.shape)} and "
            f"{list(relevant.shape)}"
        )
    relevance = relevant.to(scores.dtype)
    among_all = rank(scores - margin * (relevance - 0.5), lam)
    # Ranks are at most 1, so this puts the relevant items first, in their order.
    among_relevant = _ranks(2 * relevance - among_all.detach())
    return among_all, among_relevant


def _ranks(scores: Tensor) -> Tensor:
    order = scores.argsort(dim=-1, stable=True).flip(-1)
    return (order.argsort(dim=-1) + 1).to(scores.dtype) / scores.shape[-1]

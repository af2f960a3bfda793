"""Statistics of decisions among many classes, whose matrix is too large to learn from.

The confusion matrix of K classes has K * K numbers for each phi. Of many classes, only
its diagonal and its margins are kept, which is all that recalls, precisions and F read;
and the matrix with classes added up in a few fixed random ways, for costs of mistakes.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.metrics.confusion import predict_labels
from metricopt.statistics.contract import Groups

MANY = 32
"""Most classes whose whole confusion matrix is kept."""
DIRECTIONS = 8
"""Random sums of classes of which a matrix is kept."""
SMALL = 1e-12


class _Decided(NamedTuple):
    """Decisions of R rows, of which each is one class, or probabilities of classes.

    Attributes:
        shares: decisions of each class, weighted, shape [B, K].
        hits: decisions of each class that are right, weighted, shape [B, K].
        sums: random sums of the decisions of every example, shape [R, N, DIRECTIONS].
    """

    shares: Tensor
    hits: Tensor
    sums: Tensor


def groups_of_many(
    outputs: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    temperature: float | None,
) -> Groups:
    """Return groups of decisions that take memory in K, not in K * K.

    Args:
        outputs: scores of K classes, shape [B, N, K]; one row that is expanded is read
            once.
        targets: labels, shape [N].
        weights: of the examples in each row, shape [B, N]; None weighs all alike.
        temperature: of the softmax that stands for the arg max; None for the arg max.
    """
    classes, labels = outputs.shape[-1], targets.long()
    if weights is None:
        weights = outputs.new_ones(1, len(labels))
    weights = weights.to(outputs).expand(len(outputs), -1)
    shares = weights / weights.sum(1, keepdim=True).clamp_min(SMALL)
    mixed = _directions(classes).to(outputs)
    rows = outputs[:1] if outputs.stride(0) == 0 else outputs
    find = _exact if temperature is None else _smooth
    decided = find(rows, labels, shares, mixed, temperature or 1.0)
    true = torch.zeros_like(decided.hits).index_add_(1, labels, shares)
    true, hits, predicted = (
        part.double() for part in (true, decided.hits, decided.shares)
    )
    kinds = {
        "recalls": hits / true.clamp_min(SMALL),
        "precisions": hits / predicted.clamp_min(SMALL),
        "f": 2 * hits / (true + predicted).clamp_min(SMALL),
        "overlaps": hits / (true + predicted - hits).clamp_min(SMALL),
    }
    means = {f"mean {name}": each.mean(1, keepdim=True) for name, each in kinds.items()}
    joint = torch.einsum("bn,nr,bns->brs", shares, mixed[labels], decided.sums)
    others = {
        "rates": torch.cat([kinds["recalls"], predicted], 1),
        "sorted": kinds["recalls"].sort(1).values,
        "accuracy": hits.sum(1, keepdim=True),
        "weighted f": (true * kinds["f"]).sum(1, keepdim=True),
        "sums of the matrix": joint.flatten(1).double(),
    }
    return kinds | means | others


def _exact(
    outputs: Tensor, labels: Tensor, shares: Tensor, mixed: Tensor, _: float
) -> _Decided:
    """Count decisions of scores [R, N, K], by shares of the examples [B, N]."""
    decisions = predict_labels(outputs)
    none = shares.new_zeros(len(shares), outputs.shape[-1])
    places = decisions.expand(len(shares), -1)
    right = shares * (decisions == labels)
    return _Decided(
        none.scatter_add(1, places, shares),
        none.scatter_add(1, places, right),
        mixed[decisions],
    )


def _smooth(
    outputs: Tensor, labels: Tensor, shares: Tensor, mixed: Tensor, temperature: float
) -> _Decided:
    """Count random decisions, as likely as the softmax says, the same way."""
    likely = (outputs / temperature).softmax(-1)
    own = likely.gather(-1, labels[None, :, None].expand(len(likely), -1, 1))[..., 0]
    right = shares * own
    none = right.new_zeros(len(shares), outputs.shape[-1])
    return _Decided(
        (shares[:, None] @ likely)[:, 0],
        none.index_add(1, labels, right),
        likely @ mixed,
    )


def _directions(classes: int) -> Tensor:
    """Return fixed random sums of classes, shape [K, DIRECTIONS]."""
    generator = torch.Generator().manual_seed(classes)
    return torch.randn(classes, DIRECTIONS, generator=generator) / math.sqrt(DIRECTIONS)

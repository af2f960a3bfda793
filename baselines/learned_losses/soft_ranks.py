"""Ranks with a gradient, and Spearman's correlation of them.

Sources: Petersen et al., ICML 2021 and ICLR 2022 (differentiable sorting networks);
Blondel et al., ICML 2020 (projections onto the permutahedron).
"""

from typing import Literal

import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError, require_choice

Regularization = Literal["l2", "kl"]
STEEPNESS = 5.0
EPSILON = 1e-10


class NetworkRanks:
    """Soft ranks by a bitonic sorting network.

    Swaps are interpolated by the logistic function with phi of lambda = 0.25, as in
    ReLoss.

    Args:
        size: number n >= 2 of values.
        steepness: in 1 over the unit of the values; larger is nearer to hard ranks.
        device: of the values.
    """

    def __init__(
        self,
        size: int,
        *,
        steepness: float = STEEPNESS,
        device: torch.device | str = "cpu",
    ) -> None:
        # Imported here: only learned losses need it.
        from diffsort import DiffSortNet

        self._network = DiffSortNet(
            "bitonic",
            size,
            device=str(device),
            steepness=steepness,
            art_lambda=0.25,
            distribution="logistic_phi",
        )

    def __call__(self, values: Tensor) -> Tensor:
        """Return soft ranks, shape [n], in [0, n - 1].

        Args:
            values: shape [n]; the smallest has rank 0.

        Raises:
            ShapeError: if they are not n >= 2 values.
        """
        _check_vector(values)
        _, permutation = self._network(values[None])
        # Column k of row i: how much value i is the k-th smallest.
        ranks: Tensor = permutation[0] @ torch.arange(len(values)).to(values)
        return ranks


def projected_ranks(
    values: Tensor, *, strength: float = 1.0, regularization: Regularization = "l2"
) -> Tensor:
    """Return soft ranks by projection onto the permutahedron, shape [n], in [1, n].

    Args:
        values: n >= 2 of them, shape [n]; the smallest has the smallest rank.
        strength: in units of the values; smaller is nearer to hard ranks.
        regularization: distance of the projection, Euclidean ("l2") or, between
            exponentials, that of Kullback and Leibler ("kl").

    Raises:
        ConfigError: if the strength is not positive or the regularization unknown.
    """
    _check_vector(values)
    require_choice("regularization", regularization, Regularization)
    if strength <= 0:
        raise ConfigError(f"soft ranks need strength > 0, got strength={strength}")
    order = values.argsort(descending=True)
    ordered = values[order] / strength
    # Ranks of the values in descending order.
    aims = torch.arange(len(values), 0, -1).to(ordered)
    # Exponentials of single precision would run out of range soon.
    blocks = _blocks(ordered.detach().double(), aims.double(), regularization)
    parts = zip(ordered.split(blocks), aims.split(blocks), strict=True)
    if regularization == "l2":
        projected = [part - (part - aim).mean() for part, aim in parts]
    else:
        # Within a block the exponentials are scaled to the sum of those of the ranks.
        projected = [
            part - part.logsumexp(0) + aim.log().logsumexp(0) for part, aim in parts
        ]
        projected = [part.exp() for part in projected]
    return torch.cat(projected)[order.argsort()]


def _blocks(ordered: Tensor, aims: Tensor, regularization: str) -> list[int]:
    """Return the lengths of the blocks that the projection pools."""
    if regularization == "l2":
        wanted, weights = ordered - aims, torch.ones_like(aims)
    else:
        # The mean of these with these weights is a ratio of sums of exponentials; a
        # common factor changes no block.
        wanted, weights = (ordered - ordered.max()).exp() / aims, aims
    found = isotonic_regression(
        wanted.cpu().numpy(),
        weights=weights.cpu().numpy(),
        increasing=False,
    )
    lengths: list[int] = torch.from_numpy(found.blocks).diff().tolist()
    return lengths


def hard_ranks(values: Tensor) -> Tensor:
    """Return ranks from 0, shape [n]; equal values keep their order."""
    return values.argsort(stable=True).argsort().to(values)


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Return the correlation of two vectors of ranks, a scalar in [-1, 1].

    A constant vector has correlation 0.

    Args:
        first: shape [n], n >= 2.
        second: shape [n].
    """
    parts = [part - part.mean() for part in (first, second)]
    # An unbiased deviation, and this constant, as in the code of ReLoss.
    scaled = [part / (part.std() + EPSILON) for part in parts]
    return (scaled[0] * scaled[1]).sum() / (len(first) - 1)


def _check_vector(values: Tensor) -> None:
    if values.ndim != 1 or len(values) < 2:
        raise ShapeError(
            f"ranks need a vector of at least 2 values, got {list(values.shape)}"
        )

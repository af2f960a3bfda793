"""Ranks with a gradient, and Spearman's correlation of them.

Source: Petersen et al., ICML 2021 and ICLR 2022 (differentiable sorting networks).
"""

import torch
from torch import Tensor

from metricopt.errors import ShapeError

STEEPNESS = 5.0
EPSILON = 1e-10


class NetworkRanks:
    """Soft ranks by a bitonic sorting network.

    Swaps are interpolated by the logistic function with phi of lambda = 0.25, as in
    ReLoss.

    Args:
        size: number n >= 2 of values.
        steepness: in 1 over the unit of the values; larger is nearer to hard ranks.
        device: device of the values.
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
        if values.ndim != 1 or len(values) < 2:
            raise ShapeError(
                f"ranks need a vector of at least 2 values, got {list(values.shape)}"
            )
        _, permutation = self._network(values[None])
        # Column k of row i: how much value i is the k-th smallest.
        ranks: Tensor = permutation[0] @ torch.arange(len(values)).to(values)
        return ranks


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

"""Eq. (7): estimators of the gradient of a smoothed objective, and how they are merged.

The objective L is smoothed over its weights: J(w) = E L(w + e), e ~ N(0, s^2 I). Draws
come in antithetic pairs w + e and w - e, all else equal.

Source: Huang et al., CVPR 2021, supplement B, eq. (7); Metz et al., arXiv 1810.10180.
"""

from typing import NamedTuple

import torch
from torch import Tensor

LEAST_VARIANCE = 1e-12
"""Floor of a variance that an estimate is weighted by."""


class Merged(NamedTuple):
    """Two estimates of a gradient as one.

    Attributes:
        gradient: shape [W].
        share: weight of the estimate through the steps, in [0, 1], shape [W].
    """

    gradient: Tensor
    share: Tensor


def evolution_strategies(
    plus: Tensor, minus: Tensor, noise: Tensor, deviation: float
) -> Tensor:
    """Return (L(w + e) - L(w - e)) e / (2 s^2) of every pair.

    If a run is cut into windows with a new e each, the noise is the sum of all e of the
    run so far, and the values are those of the window: that is persistent evolution
    strategies, which has no bias from cutting (Vicol et al., arXiv 2112.13835).

    Args:
        plus: L(w + e), shape [...].
        minus: L(w - e), shape [...].
        noise: e, shape [..., W].
        deviation: s.

    Returns:
        Shape [..., W].
    """
    return (plus - minus)[..., None] * noise / (2 * deviation**2)


def reparameterised(plus: Tensor, minus: Tensor) -> Tensor:
    """Return the mean of the gradients of L at w + e and w - e, each [..., W]."""
    return (plus + minus) / 2


def sample_variance(draws: Tensor) -> Tensor:
    """Return the unbiased variance of every weight over draws [n, W], n > 1: [W]."""
    return draws.var(0)


def merge(
    strategies: Tensor,
    through_steps: Tensor,
    variances: tuple[Tensor, Tensor],
) -> Merged:
    """Return the mean of two estimates, each weighted by one over its variance.

    Both estimates must be unbiased, and the variances must come from other draws:
    otherwise the merged estimate is biased, too.

    Args:
        strategies: mean estimate of evolution strategies, shape [W].
        through_steps: mean estimate by back-propagation, shape [W].
        variances: variance of a draw of either, in that order, shape [W] each.
    """
    one, other = (1 / each.clamp_min(LEAST_VARIANCE) for each in variances)
    share = other / (one + other)
    return Merged(torch.lerp(strategies, through_steps, share), share)

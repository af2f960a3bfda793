"""Spearman's rank correlation of two quantities."""

import math

from torch import Tensor

CONSTANT = 1e-12
"""Standard deviation below which values count as equal: rounding is no ranking."""


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Return Spearman's rank correlation, in [-1, 1]; NaN where either is constant.

    Any two shapes with as many values, at least one; equal values share the mean of
    their ranks.
    """
    # Imported here: it takes a while, and few users of the library need it.
    from scipy.stats import spearmanr

    flat = [part.detach().flatten().double().cpu() for part in (first, second)]
    if len(flat[0]) < 2 or min(part.std().item() for part in flat) < CONSTANT:
        return math.nan
    return float(spearmanr(*(part.numpy() for part in flat)).statistic)

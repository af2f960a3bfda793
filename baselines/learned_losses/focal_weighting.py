"""Focal weighting of ALA: eq. 10, soft maxima over the pairs of every anchor.

Source: Huang et al., ICML 2019, Sec. 4, eq. 10. Where the paper is silent we chose:
Phi begins at 1, stays within [0.1, 10], and the loss is the mean over anchors.
"""

import torch
from torch import Tensor

OFFSET = 1.0
"""Distance alpha between positives and negatives."""
BOUNDS = (0.1, 10.0)
"""Least and greatest Phi; it divides, so it is above 0."""


def focal_weighting(
    distances: Tensor, positives: Tensor, negatives: Tensor, phi: Tensor
) -> Tensor:
    """Return the loss of every anchor, shape [n].

    log[1 + sum exp(Phi_1 (d+ - alpha))] / Phi_1 over its positives, and
    log[1 + sum exp(-Phi_2 (d- - alpha))] / Phi_2 over its negatives. A sum of no pairs
    is 0, and costs nothing.

    Args:
        distances: distances of anchors to examples, shape [n, m].
        positives: which examples count as its positives, bool, shape [n, m].
        negatives: which count as its negatives, bool, shape [n, m].
        phi: sharpness of both maxima, above 0, shape [2].

    Source: Huang et al., ICML 2019, eq. 10. Differs: nothing.
    """
    nearer = phi[0] * (distances - OFFSET)
    farther = -phi[1] * (distances - OFFSET)
    return (
        _soft_maximum(nearer, positives) / phi[0]
        + _soft_maximum(farther, negatives) / phi[1]
    )


def _soft_maximum(values: Tensor, counted: Tensor) -> Tensor:
    """Return log(1 + sum exp(values)) of each row over what counts, shape [n]."""
    kept = values.masked_fill(~counted, -torch.inf)
    zero = values.new_zeros(len(values), 1)
    return torch.cat([zero, kept], 1).logsumexp(1)

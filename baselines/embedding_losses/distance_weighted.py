"""Distance-weighted sampling: negatives from near and far alike.

Source: Wu et al., ICCV 2017, sec. 4.1; pytorch-metric-learning's DistanceWeightedMiner.
Differs: weights are divided by the largest of their anchor, not of the whole
mini-batch, which underflows for whole anchors in many dimensions; every pair of one
class is taken once, as in the authors' code, instead of drawn positives.
"""

import torch
from torch import Tensor

from baselines.embedding_losses.contract import Triplets

NEAREST = 0.5
"""Distance below which negatives weigh no more, against noisy gradients."""
FARTHEST = 1.4
"""Distance from which on a negative is never drawn: its loss would be 0."""


def negative_probabilities(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Return how probable each example is as a negative of each anchor.

    It is proportional to 1 / q(d), where q is the density of the distance d between
    points spread evenly over the unit sphere: q(d) ~ d^(E-2) (1 - d^2/4)^((E-3)/2).

    Args:
        embeddings: embeddings of unit length, shape [n, E].
        targets: classes, shape [n].

    Returns:
        Probabilities, shape [n, n]; rows sum to 1, but to 0 for an anchor that has no
        admissible negative: none of another class nearer than `FARTHEST`.
    """
    size = embeddings.shape[1]
    distances = torch.cdist(embeddings, embeddings)
    admissible = (targets[:, None] != targets) & (distances < FARTHEST)
    # From FARTHEST on only the mask matters; at 2 the logarithm would be infinite.
    near = distances.clamp(NEAREST, FARTHEST)
    log_weights = (2 - size) * near.log() - (size - 3) / 2 * (1 - near**2 / 4).log()
    chosen = log_weights.masked_fill(~admissible, -torch.inf).softmax(1)
    return torch.where(admissible, chosen, 0)


def draw_triplets(
    embeddings: Tensor, targets: Tensor, generator: torch.Generator
) -> Triplets:
    """Return every pair of one class with a negative drawn for its first example.

    Args:
        embeddings: embeddings of unit length, shape [n, E].
        targets: classes, shape [n].
        generator: source of the draw, on the CPU.

    Returns:
        The triplets. Anchors without an admissible negative are left out.
    """
    with torch.no_grad():
        weights = negative_probabilities(embeddings, targets).cpu()
    own = (targets[:, None] == targets).cpu().fill_diagonal_(False)
    anchors, positives = (own & weights.any(1, keepdim=True)).nonzero(as_tuple=True)
    negatives = anchors  # none, if there are no pairs
    if len(anchors) > 0:
        drawn = torch.multinomial(weights[anchors], 1, generator=generator)
        negatives = drawn[:, 0]
    device = targets.device
    return anchors.to(device), positives.to(device), negatives.to(device)

"""Line 5: the triplets that the ordinal term of eq. (2) compares, and their mining.

Source: Huang et al., CVPR 2021, Sec. 3.1: Fisher's ratio says which points of a
trajectory differ; mining follows Wang et al., CVPR 2019.
"""

import torch
from torch import Tensor

from metricopt.algorithm1.recipe import Mining

FISHER_THRESHOLD = 2.0
MINED_POINTS = 128
"""Points of a batch that triplets are mined among."""


def mine(
    embedding: Tensor,
    target: tuple[Tensor, Tensor],
    mining: Mining,
    generator: torch.Generator,
) -> Tensor:
    """Return triplets (anchor, positive, negative) of a batch, shape [M, 3].

    They index the flattened points, and are mined among `MINED_POINTS` of the batch,
    drawn at random: the work grows with the square of their number, but what a step
    learns does not.
    """
    if mining == "none":
        return torch.empty(0, 3, dtype=torch.long)
    drawn = torch.randperm(len(embedding), generator=generator)[:MINED_POINTS]
    positive, negative = fisher_sets(*(part.flatten()[drawn] for part in target))
    if mining == "random":
        triplets = random_triplets(positive, negative, generator)
    else:
        distance = embedding_distances(embedding[drawn])
        triplets = (
            hardest_triplets(distance, positive, negative)
            if mining == "hardest"
            else multi_similarity_triplets(distance, positive, negative, generator)
        )
    return drawn[triplets]


def fisher_ratio(mean: Tensor, deviation: Tensor) -> Tensor:
    """Return r_tt' = (M_t - M_t')^2 / (sigma_t^2 + sigma_t'^2), shape [N, N]."""
    gap = mean[:, None] - mean[None, :]
    return gap.square() / (deviation.square()[:, None] + deviation.square()[None, :])


def fisher_sets(mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the positives (r < 2, not itself) and negatives (r >= 2).

    Returns:
        Two boolean masks, shape [N, N], row = anchor.
    """
    ratio = fisher_ratio(mean, deviation)
    itself = torch.eye(len(mean), dtype=torch.bool, device=mean.device)
    return (ratio < FISHER_THRESHOLD) & ~itself, ratio >= FISHER_THRESHOLD


def embedding_distances(embedding: Tensor) -> Tensor:
    """Return Euclidean distances D_tt' of embeddings [N, E], shape [N, N]."""
    square = embedding.square().sum(1)
    gram = embedding @ embedding.T
    # A floor keeps the gradient of the root finite where embeddings coincide.
    return (square[:, None] + square[None, :] - 2 * gram).clamp_min(1e-12).sqrt()


def hardest_triplets(distance: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the farthest positive and nearest negative of every anchor that has both.

    Args:
        distance: shape [N, N].
        positive: mask of positives, shape [N, N].
        negative: mask of negatives, shape [N, N].

    Returns:
        Triplets (anchor, positive, negative), shape [M, 3].
    """
    far = distance.masked_fill(~positive, -torch.inf).argmax(1)
    near = distance.masked_fill(~negative, torch.inf).argmin(1)
    return _triplets(far, near, positive.any(1) & negative.any(1))


def multi_similarity_triplets(
    distance: Tensor,
    positive: Tensor,
    negative: Tensor,
    generator: torch.Generator,
    margin: float = 0.1,
) -> Tensor:
    """Return one informative positive and negative per anchor, drawn uniformly.

    Informative positives are farther than the nearest negative minus a margin.
    Informative negatives are nearer than the farthest positive plus a margin. If there
    are none, the hardest is taken. Always taking the hardest collapses the embedding.

    Source: Wang et al., CVPR 2019, Sec. 3.3, on distances.
    """
    nearest = distance.masked_fill(~negative, torch.inf).amin(1, keepdim=True)
    farthest = distance.masked_fill(~positive, -torch.inf).amax(1, keepdim=True)
    hard_positive = positive & (distance > nearest - margin)
    hard_negative = negative & (distance < farthest + margin)
    chosen_positive = _draw(hard_positive, positive & (distance >= farthest), generator)
    chosen_negative = _draw(hard_negative, negative & (distance <= nearest), generator)
    return _triplets(
        chosen_positive, chosen_negative, positive.any(1) & negative.any(1)
    )


def random_triplets(
    positive: Tensor, negative: Tensor, generator: torch.Generator
) -> Tensor:
    """Return one positive and negative per anchor, drawn uniformly from the sets."""
    return _triplets(
        _draw(positive, positive, generator),
        _draw(negative, negative, generator),
        positive.any(1) & negative.any(1),
    )


def _draw(mask: Tensor, fallback: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one column per row of a mask, or of the fallback if the row is empty."""
    mask = torch.where(mask.any(1, keepdim=True), mask, fallback)
    keys = torch.rand(mask.shape, generator=generator, device=mask.device)
    # A key may be exactly zero, so what is masked must lie below it.
    return keys.masked_fill(~mask, -1.0).argmax(1)


def _triplets(positive: Tensor, negative: Tensor, usable: Tensor) -> Tensor:
    anchor = torch.arange(len(positive), device=positive.device)
    return torch.stack([anchor, positive, negative], dim=1)[usable]

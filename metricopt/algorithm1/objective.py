"""Line 5: the objective L_v of the value function, eq. (2), and its mined triplets.

Source: Huang et al., CVPR 2021, eq. (2) and Sec. 3.1: Fisher's ratio says which points
of a trajectory differ; mining follows Wang et al., CVPR 2019.
"""

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from metricopt.algorithm1.recipe import GAMMA, Mining, Recipe
from metricopt.algorithm1.value_function import ValueFunction

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
    """Return masks [N, N] of positives (r < 2, not itself) and negatives (r >= 2)."""
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

    Distances and masks are [N, N], triplets (anchor, positive, negative) [M, 3].
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


LOG_2 = math.log(2.0)
LEAST_SIZE = 1e-3
"""Below this size the regression term says nothing about its weight."""


class Points(NamedTuple):
    """Interpolated trajectories: a batch of points that knows which belong together.

    Attributes:
        phi: shape [B, T, d].
        mean: interpolated cost, shape [B, T].
        deviation: standard deviation of that cost, shape [B, T].
    """

    phi: Tensor
    mean: Tensor
    deviation: Tensor

    def rows(self, index: Tensor) -> "Points":
        """Return the trajectories at `index`."""
        return Points(*(part[index] for part in self))


def join_points(parts: Sequence[Points]) -> Points:
    """Return several batches of points as one."""
    return Points(*map(torch.cat, zip(*parts, strict=True)))


def value_loss(
    prediction: Tensor,
    embedding: Tensor,
    target: tuple[Tensor, Tensor],
    triplets: Tensor,
    gamma: float = GAMMA,
) -> Tensor:
    """Return L_v = gamma L_regress + L_oe, eq. (2).

    The target is mean and deviation of the interpolated cost, each of the shape of the
    prediction, [T] or [B, T]; embeddings are [N, E], triplets [M, 3].
    """
    return gamma * regression_term(prediction, *target) + ordinal_term(
        embedding, triplets
    )


def regression_term(prediction: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return L_regress = sum_t |f_t - M_t| / sigma_t / sum_t 1 / sigma_t.

    All of one shape, [T] or [B, T]. It is the mean over trajectories: one whose costs
    vary little, and are sure for that reason, weighs no more than another.
    """
    weight = 1.0 / deviation
    error = (prediction - mean).abs() * weight
    return (error.sum(-1) / weight.sum(-1)).mean()


def ordinal_term(embedding: Tensor, triplets: Tensor) -> Tensor:
    """Return L_oe = mean log(1 + exp(D(t, t_p) - D(t, t_n))) over triplets [M, 3].

    Embeddings are [N, E]; it is zero if M = 0.
    """
    if len(triplets) == 0:
        return embedding.sum() * 0.0
    anchor, positive, negative = (embedding[index] for index in triplets.unbind(1))
    near = (anchor - positive).square().sum(1).clamp_min(1e-24).sqrt()
    far = (anchor - negative).square().sum(1).clamp_min(1e-24).sqrt()
    return functional.softplus(near - far).mean()


def objective(
    value_function: ValueFunction,
    batch: Points,
    recipe: Recipe,
    generator: torch.Generator,
    *,
    gamma: float,
) -> Tensor:
    """Return L_v of a batch of points, in standardised costs.

    The recipe says how triplets are mined, and whether deviations weigh the points.
    """
    return value_loss(*_terms(value_function, batch, recipe, generator), gamma)


@torch.no_grad()
def equal_weight(
    value_function: ValueFunction,
    batch: Points,
    recipe: Recipe,
    generator: torch.Generator,
) -> float:
    """Return the gamma with which both terms of L_v have the same size on a batch.

    The paper chose gamma for that purpose, but for costs in their own units. Where no
    triplet is found, the size of the ordinal term is log 2, its value where positives
    are as far away as negatives. The value function is at the start of its training,
    and left as it is.
    """
    fresh = copy.deepcopy(value_function).train()
    prediction, embedding, target, triplets = _terms(fresh, batch, recipe, generator)
    regression = max(regression_term(prediction, *target).item(), LEAST_SIZE)
    ordinal = ordinal_term(embedding, triplets).item() if len(triplets) else LOG_2
    return ordinal / regression


def _terms(
    value_function: ValueFunction,
    batch: Points,
    recipe: Recipe,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
    """Return what L_v is made of: prediction, embedding, target and triplets."""
    scale = value_function.cost_deviation
    mean = (batch.mean - value_function.cost_mean) / scale
    deviation = batch.deviation / scale
    if not recipe.uncertainty:
        deviation = deviation.mean().expand_as(deviation)
    embedding = value_function.embed(batch.phi.flatten(0, 1))
    triplets = mine(embedding.detach(), (mean, deviation), recipe.mining, generator)
    prediction = value_function.score(embedding).view_as(mean)
    return prediction, embedding, (mean, deviation), triplets

"""The objective of a value function on a batch of points, with its triplets mined.

Source: Huang et al., CVPR 2021, eq. (2).
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.algorithm1.recipe import Mining, Recipe
from metricopt.algorithm1.value_function import (
    ValueFunction,
    embedding_distances,
    fisher_sets,
    hardest_triplets,
    multi_similarity_triplets,
    ordinal_term,
    random_triplets,
    regression_term,
    value_loss,
)

MINED_POINTS = 128
"""Points of a batch that triplets are mined among."""
LOG_2 = math.log(2.0)
LEAST_SIZE = 1e-3
"""Below this size the regression term says nothing about its weight."""


@dataclass(frozen=True)
class Points:
    """Interpolated trajectories: a batch of points that knows which belong together.

    Attributes:
        phi: shape [B, T, d].
        mean: interpolated cost, shape [B, T].
        deviation: its standard deviation, shape [B, T].
    """

    phi: Tensor
    mean: Tensor
    deviation: Tensor

    def rows(self, index: Tensor) -> "Points":
        """Return the trajectories at `index`."""
        return Points(self.phi[index], self.mean[index], self.deviation[index])


def join_points(parts: Sequence[Points]) -> Points:
    """Return several batches of points as one."""
    return Points(
        torch.cat([part.phi for part in parts]),
        torch.cat([part.mean for part in parts]),
        torch.cat([part.deviation for part in parts]),
    )


def objective(
    value_function: ValueFunction,
    batch: Points,
    recipe: Recipe,
    generator: torch.Generator,
    *,
    gamma: float,
) -> Tensor:
    """Return L_v of a batch of points, in standardised costs.

    Args:
        value_function: in training mode, where it is trained.
        batch: what it is to predict.
        recipe: how triplets are mined, and whether deviations weigh the points.
        generator: draws the triplets.
        gamma: weight of the regression term.
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
    are as far away as negatives.

    Args:
        value_function: at the start of its training; it is left as it is.
        batch: points it has not seen.
        recipe: as in `objective`.
        generator: draws the triplets.
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

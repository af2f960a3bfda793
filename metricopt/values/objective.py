"""The objective of a value function on a batch of points, with its triplets mined.

Source: Huang et al., CVPR 2021, eq. (2).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.values.recipe import Mining, Recipe
from metricopt.values.value_function import (
    ValueFunction,
    embedding_distances,
    fisher_sets,
    hardest_triplets,
    multi_similarity_triplets,
    random_triplets,
    value_loss,
)

MINED_POINTS = 128
"""Points of a batch that triplets are mined among."""


@dataclass(frozen=True)
class Points:
    """Interpolated trajectories as one batch of points.

    Attributes:
        phi: shape [N, d].
        mean: interpolated cost, shape [N].
        deviation: its standard deviation, shape [N].
    """

    phi: Tensor
    mean: Tensor
    deviation: Tensor


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
) -> Tensor:
    """Return L_v of a batch of points, in standardised costs."""
    scale = value_function.cost_deviation
    mean = (batch.mean - value_function.cost_mean) / scale
    deviation = batch.deviation / scale
    if not recipe.uncertainty:
        deviation = deviation.mean().expand_as(deviation)
    embedding = value_function.embed(batch.phi)
    triplets = mine(embedding.detach(), (mean, deviation), recipe.mining, generator)
    prediction = value_function.score(embedding)
    return value_loss(prediction, embedding, (mean, deviation), triplets, recipe.gamma)


def mine(
    embedding: Tensor,
    target: tuple[Tensor, Tensor],
    mining: Mining,
    generator: torch.Generator,
) -> Tensor:
    """Return triplets (anchor, positive, negative) of a batch, shape [M, 3].

    They are mined among `MINED_POINTS` of the batch, drawn at random: the work grows
    with the square of their number, but what a step learns does not.
    """
    if mining == "none":
        return torch.empty(0, 3, dtype=torch.long)
    drawn = torch.randperm(len(embedding), generator=generator)[:MINED_POINTS]
    positive, negative = fisher_sets(*(part[drawn] for part in target))
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

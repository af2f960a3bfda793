"""The losses of embeddings that ALA adapts: distance mixture and focal weighting.

Both compare the pairs that a framework samples: semi-hard triplets of the triplet loss,
or distance-weighted ones of the margin loss.

Source: Huang et al., ICML 2019, Sec. 4. Where the paper is silent we chose: the loss is
the mean over triplets, or over anchors; statistics of the observe split are means, over
all pairs of one class for d+, and over the nearest example of another class to each for
d-; they are in units of their value at distance sqrt(2), that of random directions; one
policy decides on all parameters.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from baselines.embedding_losses.contract import Triplets
from baselines.learned_losses.adaptive_loss import PAST, AdaptiveLoss, History
from baselines.learned_losses.distance_mixture import (
    CHANCE,
    EACH,
    FunctionSet,
    distance_mixture,
    start,
    terms,
)
from baselines.learned_losses.focal_weighting import BOUNDS, focal_weighting

Sample = Callable[[Tensor, Tensor], Triplets]
"""Returns triplets of embeddings of unit length [n, E] with classes [n]."""
EQUAL = 1e-3
"""Distance up to which embeddings are the same."""
QUERIES = 256
"""Examples of the observe split that are compared with all others at a time."""


class AdaptiveDistances(AdaptiveLoss):
    """A loss of distances; an action moves one parameter.

    Args:
        sample: returns the triplets of a mini-batch that are compared.
    """

    features = PAST + 3
    noted = "weights"
    bounds: tuple[float, float]

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.history = History()

    @abstractmethod
    def _start(self) -> Tensor:
        """Return the parameters of the default loss, shape [P]."""

    @abstractmethod
    def _of(self, distances: Tensor, triplets: Triplets, phi: Tensor) -> Tensor:
        """Return the loss of one network, a scalar, from distances [n, n]."""

    @abstractmethod
    def _statistics(self, positive: Tensor, negative: Tensor) -> Tensor:
        """Return what each parameter weighs, [P], from d+ and d- of some pairs."""

    def start(self, count: int, noise: float, generator: torch.Generator) -> Tensor:
        """Return the default parameters, shape [k, P]; see `AdaptiveLoss`."""
        phi = self._start().repeat(count, 1)
        drawn = noise * (2 * torch.rand(phi.shape, generator=generator) - 1)
        return (phi + drawn).clamp(*self.bounds)

    def loss(self, outputs: Tensor, targets: Tensor, phi: Tensor) -> Tensor:
        """Return the loss of every network, shape [k]; see `AdaptiveLoss`.

        It is 0 with gradient 0 where nothing is sampled, and NaN where an embedding is
        not finite.
        """
        both = zip(outputs.unbind(1), phi, strict=True)
        return torch.stack([self._loss(each, targets, own) for each, own in both])

    def observe(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Take note of the distances; every parameter may change, where there are any.

        See `AdaptiveLoss`.
        """
        chance = torch.full((1,), CHANCE)
        unit = self._statistics(chance, chance)
        rows = [observed_distances(each, targets) for each in outputs]
        found = torch.stack([self._statistics(*row).cpu() for row in rows]) / unit
        self.history.observe(found)
        return found.isfinite().all(0)

    def states(self, phi: Tensor, done: float) -> Tensor:
        """Return the states of the parameters, shape [k, P, 13]; see `AdaptiveLoss`."""
        change = self.history.change.clamp(-1, 1)
        beside = torch.stack([change, phi, torch.full_like(phi, done)], -1)
        return torch.cat([self.history.past, beside], -1)

    def moved(self, phi: Tensor, changes: Tensor) -> Tensor:
        """Return the parameters after changes [k, P], within their bounds."""
        return (phi + changes).clamp(*self.bounds)

    def state(self) -> dict[str, Any]:
        """Return what was observed, for checkpoints."""
        return self.history.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.history.restore(state)

    def _loss(self, embeddings: Tensor, targets: Tensor, phi: Tensor) -> Tensor:
        if not bool(embeddings.isfinite().all()):
            return embeddings.sum() * torch.nan
        unit = normalize(embeddings)
        triplets = self.sample(unit, targets)
        if len(triplets[0]) == 0:
            return embeddings.sum() * 0
        return self._of(distances_of(unit, unit), triplets, phi)


class DistanceMixture(AdaptiveDistances):
    """Eq. 9: weights of five functions of d+ and five of d-; see `distance_mixture`.

    Args:
        sample: returns the triplets of a mini-batch that are compared.
        functions: name of the set of functions.
    """

    bounds = (0.0, 1.0)

    def __init__(self, sample: Sample, functions: FunctionSet) -> None:
        super().__init__(sample)
        self.functions = functions

    def _start(self) -> Tensor:
        return start()

    def _of(self, distances: Tensor, triplets: Triplets, phi: Tensor) -> Tensor:
        anchors, positives, negatives = triplets
        positive, negative = (
            distances[anchors, positives],
            distances[anchors, negatives],
        )
        return distance_mixture(positive, negative, phi, self.functions).mean()

    def _statistics(self, positive: Tensor, negative: Tensor) -> Tensor:
        # Each half of the terms is of one distance; the other half is not used.
        of_positive = terms(positive, positive, self.functions).mean(0)
        of_negative = terms(negative, negative, self.functions).mean(0)
        return torch.cat([of_positive[:EACH], of_negative[EACH:]])


class FocalWeighting(AdaptiveDistances):
    """Eq. 10: how sharp two soft maxima are; see `focal_weighting`.

    An anchor's positives and negatives are those of its triplets.
    """

    bounds = BOUNDS

    def _start(self) -> Tensor:
        return torch.ones(2)

    def _of(self, distances: Tensor, triplets: Triplets, phi: Tensor) -> Tensor:
        anchors, positives, negatives = triplets
        counted = torch.zeros(2, *distances.shape, dtype=torch.bool)
        counted = counted.to(distances.device)
        counted[0, anchors, positives] = True
        counted[1, anchors, negatives] = True
        each = focal_weighting(distances, counted[0], counted[1], phi)
        return each[anchors.unique()].mean()

    def _statistics(self, positive: Tensor, negative: Tensor) -> Tensor:
        return torch.stack([positive.mean(), negative.mean()])


def distances_of(queries: Tensor, gallery: Tensor) -> Tensor:
    """Return the distances of embeddings of unit length, with finite slopes at 0.

    Args:
        queries: shape [n, E].
        gallery: shape [m, E].

    Returns:
        Shape [n, m], in [0, 2]. Of equal embeddings a little above 0.
    """
    squared = 2 - 2 * queries @ gallery.T
    return squared.clamp(min=torch.finfo(squared.dtype).eps).sqrt()


@torch.no_grad()
def observed_distances(embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distances of pairs of one class, and of nearest other classes.

    Args:
        embeddings: shape [N, E].
        targets: classes, shape [N].

    Returns:
        Of every pair within a class, twice, shape [P], but for equal embeddings, which
        are one example that is listed twice; and of each example to the nearest of
        another class, shape [N], or none if there is one class.
    """
    unit = normalize(embeddings)
    positive, negative = [], []
    for some in torch.arange(len(unit), device=unit.device).split(QUERIES):
        distances = distances_of(unit[some], unit)
        same = targets[some, None] == targets
        positive.append(distances[same & (distances > EQUAL)])
        nearest = distances.masked_fill(same, torch.inf).amin(1)
        negative.append(nearest[nearest.isfinite()])
    return torch.cat(positive), torch.cat(negative)

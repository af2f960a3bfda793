"""Statistics of retrieval: where the images of its own class rank for every query.

Recall at k is linear in how often the nearest image of the same class is among the
first r; what counts all of them depends on how early the others come, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from metricopt.statistics.contract import STATISTICS, Groups, Statistics

RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
"""An image is found at r if fewer than r images of other classes are nearer."""
MOST = 10
"""Images of its own class that are looked for, of a query with more."""
SMOOTHNESS = 0.1
"""Width of the smooth step from nearer to further, in deviations of similarities."""
RANK_SMOOTHNESS = 0.25
"""Width of the smooth step at a rank, in units of its logarithm."""
COMPARED_AT_ONCE = 2**25
"""Similarities in memory at a time."""
SMALL = 1e-12


@STATISTICS.register("neighbours")
@dataclass(frozen=True)
class RetrievalStatistics(Statistics):
    """How many queries find an image of their class, and what share of all, by rank.

    Every example is a query among all others. Embeddings are compared by cosine; of
    equally near images those of other classes come first.

    Attributes:
        gallery: number of examples of the split; 0 for that of the outputs given.
    """

    gallery: int = 0
    name = "neighbours"
    near = "nearest"

    @property
    def compares(self) -> bool:
        """Whether outputs are embeddings: yes."""
        return True

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there are two classes, and a pair of one class."""
        counts = targets.unique(return_counts=True)[1]
        return len(counts) > 1 and bool(counts.max() > 1)

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics of a gallery of as many examples as there are."""
        return replace(self, gallery=len(targets))

    def draw(self, targets: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return places of whole classes, so many that they have `count` examples."""
        if count >= len(targets):
            return torch.arange(len(targets))
        kinds, place, sizes = targets.unique(return_inverse=True, return_counts=True)
        order = torch.randperm(len(kinds), generator=generator)
        # The first classes, and those with which the count is reached.
        before = sizes[order].cumsum(0) - sizes[order]
        return torch.isin(place, order[before < count]).nonzero().flatten()

    def views(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what every query finds among all examples, [B, N, 2 J].

        Whether the nearest image of its class is found at each of J ranks, then the
        share of the images of its class.
        """
        return self._found(outputs, targets, smooth=False)

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of queries, each ranked by a network of its own."""
        return _means(views, _pairs(targets)[1].any(1), weights)

    def groups(
        self,
        outputs: Tensor,
        targets: Tensor,
        weights: Tensor | None,
        *,
        smooth: bool,
    ) -> Groups:
        """Return the groups; weights are of queries, each has the whole gallery."""
        found = self._found(outputs, targets, smooth=smooth)
        return _means(found, _pairs(targets)[1].any(1), weights)

    def _found(self, outputs: Tensor, targets: Tensor, *, smooth: bool) -> Tensor:
        gallery = self.gallery or len(targets)
        ranks = outputs.new_tensor([r for r in RANKS if r < gallery])
        places, present = _pairs(targets)
        counts = _Counts(outputs, targets, places, smooth)
        # Some examples have as many times fewer of other classes nearer.
        factor = (gallery - 1) / max(1, len(targets) - 1)
        found = []
        for chosen, nearer in counts:
            known = present[chosen, :, None]
            at = _among(factor * nearer[..., None], ranks, smooth)
            first = at.masked_fill(~known, -1).amax(2)
            share = (at * known).sum(2) / known.sum(1).clamp(min=1)
            found.append(torch.cat([first.clamp(min=0), share], -1))
        return torch.cat(found, 1)


@dataclass(frozen=True)
class _Counts:
    """How many images of other classes are nearer than those of the own class.

    Attributes:
        outputs: embeddings, shape [B, N, E].
        targets: labels, shape [N].
        places: of images of the same class, shape [N, P].
        smooth: whether counts are differentiable.
    """

    outputs: Tensor
    targets: Tensor
    places: Tensor
    smooth: bool

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield some queries, and their counts [B, n, P]."""
        whole = torch.nn.functional.normalize(self.outputs, dim=-1)
        rows, count = whole.shape[:2]
        numbers = rows * count * (self.places.shape[1] if self.smooth else 1)
        for start in range(0, count, step := max(1, COMPARED_AT_ONCE // numbers)):
            chosen = slice(start, start + step)
            near = whole[:, chosen] @ whole.mT
            places = self.places[chosen].expand(rows, -1, -1)
            own = near.gather(2, places)
            other = self.targets[chosen, None] != self.targets
            yield chosen, self._nearer(near, own, other)

    def _nearer(self, near: Tensor, own: Tensor, other: Tensor) -> Tensor:
        if not self.smooth:
            ascending = near.masked_fill(~other, -torch.inf).sort(-1).values
            return near.shape[-1] - torch.searchsorted(ascending, own.contiguous())
        spread = near.detach()[:, other].std(-1).clamp_min(SMALL)
        width = SMOOTHNESS * spread[:, None, None, None]
        above = (near[:, :, None] - own[..., None]) / width
        return torch.einsum("bnpm,nm->bnp", above.sigmoid(), other.to(near))


def _pairs(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return places of up to `MOST` others of the same class, and which are there.

    Returns:
        Places and presence, each [N, P], P >= 1.
    """
    order = targets.argsort(stable=True)
    _, place, sizes = targets.unique(return_inverse=True, return_counts=True)
    starts, own = (sizes.cumsum(0) - sizes)[place], sizes[place]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    steps = torch.arange(1, min(MOST, max(1, int(sizes.max()) - 1)) + 1)
    steps = steps.to(targets.device)
    # The next ones of the class, cyclically.
    within = ((rank - starts)[:, None] + steps) % own[:, None]
    return order[starts[:, None] + within], steps < own[:, None]


def _among(counts: Tensor, ranks: Tensor, smooth: bool) -> Tensor:
    """Return whether counts [..., 1] are below ranks [J]."""
    if not smooth:
        return (counts < ranks).to(ranks)
    return ((ranks.log() - (counts + 0.5).log()) / RANK_SMOOTHNESS).sigmoid()


def _means(found: Tensor, present: Tensor, weights: Tensor | None) -> Groups:
    """Return means over the queries, weighted [B, N], that have something to find."""
    share = present.to(found)[None]
    if weights is not None:
        share = share * weights.to(found)
    share = share / share.sum(1, keepdim=True).clamp_min(SMALL)
    means = torch.einsum("bnv,bn->bv", found, share.expand(len(found), -1))
    nearest, all_of_class = means.double().chunk(2, dim=1)
    return {"nearest": nearest, "all of the class": all_of_class}

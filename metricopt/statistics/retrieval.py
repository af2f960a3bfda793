"""Statistics of retrieval: where the images of its own class rank for every query.

Recall at k is linear in how often the nearest image of the same class is among the
first r; mean average precision also depends on the ranks of the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics

RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
"""An image is found at r if fewer than r images of other classes are nearer."""
MOST = 10
"""Images of its own class that are looked at, the nearest ones of a query with more."""
FEWEST_DRAWN = 10
"""Classes that are drawn at least, where there are as many."""
SMOOTHNESS = 0.1
"""Width of the smooth step from nearer to further, in deviations of similarities."""
RANK_SMOOTHNESS = 0.25
"""Width of the smooth step at a rank, in units of its logarithm."""
TIE = 8
"""Similarities that differ by this times the machine epsilon are tied."""
NOWHERE = -2.0
"""Similarity of an image that is not there."""
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
    def reads(self) -> Reads:
        """What outputs are: embeddings."""
        return "embeddings"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there are two classes, and a pair of one class."""
        counts = targets.unique(return_counts=True)[1]
        return len(counts) > 1 and bool(counts.max() > 1)

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics of a gallery of as many examples as there are."""
        return replace(self, gallery=len(targets))

    def draw(self, targets: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return places of random classes until they have at least `count` examples.

        Of large classes some examples are drawn, so that there are others beside them.
        """
        if count >= len(targets):
            return torch.arange(len(targets))
        most = max(2, count // FEWEST_DRAWN)
        kinds, place, sizes = targets.unique(return_inverse=True, return_counts=True)
        drawn = torch.randperm(len(kinds), generator=generator)
        used = sizes[drawn].clamp(max=most)
        # The first classes, and that with which the count is reached.
        chosen = torch.isin(place, drawn[used.cumsum(0) - used < count])
        if sizes.max() > most:
            shuffled = torch.randperm(len(targets), generator=generator)
            order = shuffled[place[shuffled].argsort(stable=True)]
            rank = torch.empty_like(order)
            rank[order] = torch.arange(len(order))
            chosen &= rank - (sizes.cumsum(0) - sizes)[place] < most
        return chosen.nonzero().flatten()

    def views(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what every query finds among all examples, [B, N, 2 J].

        Whether the nearest image of its class is found at each of J ranks, then what
        share of the `MOST` nearest of its class is.
        """
        return self._found(outputs, targets, smooth=False)

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of queries, each ranked by a network of its own."""
        return _means(views, _partners(targets), weights)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups; weights are of queries, each has the whole gallery."""
        found = self._found(outputs, targets, smooth=smooth)
        return _means(found, _partners(targets), weights)

    def _found(self, outputs: Tensor, targets: Tensor, *, smooth: bool) -> Tensor:
        gallery = self.gallery or len(targets)
        ranks = outputs.new_tensor([r for r in RANKS if r < gallery])
        partners = _partners(targets)
        most = min(MOST, max(1, int(partners.max())))
        present = torch.arange(most, device=targets.device) < partners[:, None]
        # Of some examples fewer are nearer: their number is scaled to the gallery.
        factor = (gallery - 1) / max(1, len(targets) - 1)
        found = []
        for chosen, nearer in _nearer(outputs, targets, most, smooth=smooth):
            known = present[chosen, :, None]
            at = _among(factor * nearer[..., None], ranks, smooth)
            first = at.masked_fill(~known, -1).amax(2)
            share = (at * known).sum(2) / known.sum(1).clamp(min=1)
            found.append(torch.cat([first.clamp(min=0), share], -1))
        return torch.cat(found, 1)


def _nearer(
    outputs: Tensor, targets: Tensor, most: int, *, smooth: bool
) -> Iterator[tuple[slice, Tensor]]:
    """Yield places of n queries, and how many of other classes are nearer than its own.

    Counts are [B, n, P] for the P = `most` nearest images of its class, any number for
    one that is not there; of embeddings [B, N, E] with labels [N].
    """
    whole = torch.nn.functional.normalize(outputs, dim=-1)
    rows, count = whole.shape[:2]
    step = max(1, COMPARED_AT_ONCE // (rows * count * (most if smooth else 1)))
    for start in range(0, count, step):
        chosen = slice(start, start + step)
        near = whole[:, chosen] @ whole.mT
        same = targets[chosen, None] == targets
        other = ~same
        same.diagonal(start).fill_(False)  # the query itself
        own = near.masked_fill(~same, NOWHERE).topk(most, -1).values
        count_nearer = _smooth_counts if smooth else _exact_counts
        yield chosen, count_nearer(near, own, other)


def _exact_counts(near: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """Count similarities [B, n, N] of others [n, N] that reach [B, n, P]."""
    reached = own - TIE * torch.finfo(near.dtype).eps
    found = [((near >= each[..., None]) & other).sum(-1) for each in reached.unbind(-1)]
    return torch.stack(found, -1).to(near)


def _smooth_counts(near: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """Return smooth counts, their steps as wide as the similarities of a query vary."""
    constant, others = near.detach(), other.sum(-1).clamp(min=1)
    mean = (constant * other).sum(-1) / others
    squares = ((constant - mean[..., None]).square() * other).sum(-1) / others
    width = SMOOTHNESS * squares.sqrt().clamp_min(SMALL)[..., None, None]
    above = (near[:, :, None] - own[..., None]) / width
    return torch.einsum("bnpm,nm->bnp", above.sigmoid(), other.to(near))


def _partners(targets: Tensor) -> Tensor:
    """Return how many other examples of its class every example has, [N]."""
    _, place, sizes = targets.unique(return_inverse=True, return_counts=True)
    others: Tensor = sizes[place] - 1
    return others


def _among(counts: Tensor, ranks: Tensor, smooth: bool) -> Tensor:
    """Return whether counts [..., 1] are below ranks [J]."""
    if not smooth:
        return (counts < ranks).to(ranks)
    return ((ranks.log() - (counts + 0.5).log()) / RANK_SMOOTHNESS).sigmoid()


def _means(found: Tensor, partners: Tensor, weights: Tensor | None) -> Groups:
    """Return means over the queries, weighted [B, N], that have something to find."""
    share = (partners > 0).to(found)[None]
    if weights is not None:
        share = share * weights.to(found)
    share = share / share.sum(1, keepdim=True).clamp_min(SMALL)
    means = torch.einsum("bnv,bn->bv", found, share.expand(len(found), -1))
    nearest, all_of_class = means.double().chunk(2, dim=1)
    return {"nearest": nearest, "all of the class": all_of_class}

"""Statistics of rankings by query, or user: how the examples of each are ordered.

A metric of such rankings is a mean over queries. Of each query it knows the ranks of
what is relevant: the gain down to some place (NDCG), the first hit (MRR), the mean
precision at hits (MAP), or how many pairs are in order (AUC).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from metricopt.reading.columns import Column, levels
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import Groups, Statistics

NAMES = ("query", "query_id", "queries", "qid", "user", "user_id", "session")
"""Columns that name queries, however many values they have."""
FEWEST = 10
"""Columns of words with more values than these name queries, not groups."""
CUTS = (1, 3, 5, 10, 20)
"""Places down to which gains and hits are counted."""
MOST_PAIRS = 2**24
"""Most pairs of examples of one query, in all queries together."""
SMOOTHNESS, STEP = 0.15, 0.3
"""Widths of smooth steps: in deviations of the scores, and in places."""
SMALL = 1e-12


def queries_of(columns: Mapping[str, Column]) -> dict[str, Tensor]:
    """Return the query of every example, [N], by the name of the column."""
    found = {}
    for name, column in columns.items():
        if column.ndim != 1:
            continue
        places, kinds = levels(column)
        words = (
            not isinstance(column, Tensor) and FEWEST < len(kinds) <= len(places) / 2
        )
        if name.lower() in NAMES or words:
            found[name] = places
    return found


@dataclass(frozen=True, eq=False)
class QueryStatistics(Statistics):
    """Means over queries, of outputs [B, N, 1 or 2] and relevances [N], >= 0.

    Two outputs rank by the second against the first. Queries without anything relevant
    have no ranking; their number does not depend on phi.

    Attributes:
        column: name of the column that names the queries.
        query: the query of every example, shape [N].
        read: what outputs are.
    """

    column: str
    query: Tensor
    read: Reads
    near: ClassVar[str] = "gains and hits"

    @property
    def name(self) -> str:  # type: ignore[override]
        """What it is, and the column."""
        return f"rankings by {self.column!r}"

    @property
    def reads(self) -> Reads:
        """What outputs are."""
        return self.read

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there is one ranking, and pairs are not too many."""
        sizes = torch.bincount(self.query)
        few = int(sizes.max()) ** 2 * len(sizes) <= MOST_PAIRS
        columns = 2 if self.read == "scores" else 1
        one = outputs.shape[-1] <= columns and targets.numel() == len(targets)
        return one and few and bool((targets >= 0).all() & (targets > 0).any())

    def sizes(self, targets: Tensor) -> dict[str, int]:
        """Return how many examples there are, and queries."""
        return {"examples": len(targets), "queries": len(self.query.unique())}

    def together(self, targets: Tensor) -> Tensor:
        """Return the queries: their examples go together."""
        return self.query

    def at(self, places: Tensor) -> Self:
        """Return the statistics of the examples at places [n]."""
        return replace(self, query=self.query[places])

    def draw(self, targets: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return the places of all examples of some queries, about `count`."""
        found, place = self.query.unique(return_inverse=True)
        order = torch.randperm(len(found), generator=generator)
        reached = torch.bincount(place)[order].cumsum(0)
        chosen = order[: int((reached < count).sum()) + 1]
        return torch.isin(place, chosen).nonzero().flatten()

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return means over the queries, if wanted of smooth ranks."""
        scores = outputs[..., -1]
        if outputs.shape[-1] == 2:
            scores = scores - outputs[..., 0]
        if weights is None:
            weights = scores.new_ones(1, len(targets))
        rows = scores[:1] if scores.stride(0) == 0 else scores
        table = _Table.of(self.query.to(scores.device))
        ranked = _Ranked.of(rows, targets.flatten().to(rows), table, smooth=smooth)
        count = weights.to(scores).expand(len(scores), -1)[:, table.places]
        shares = (count * table.filled).sum(2) / table.filled.sum(1)
        return ranked.means(shares)


class _Table(NamedTuple):
    """Places of the examples of Q queries, filled up to M columns, each [Q, M]."""

    places: Tensor
    filled: Tensor

    @classmethod
    def of(cls, query: Tensor) -> "_Table":
        """Return the table of the query of every example, [N]."""
        _, own, sizes = query.unique(return_inverse=True, return_counts=True)
        order = own.argsort(stable=True)
        ends = sizes.cumsum(0)
        column = torch.arange(len(query), device=query.device)
        column = column - (ends - sizes)[own[order]]
        places = own.new_zeros(len(sizes), int(sizes.max()))
        filled = torch.zeros_like(places, dtype=torch.bool)
        places[own[order], column] = order
        filled[own[order], column] = True
        return cls(places, filled)


@dataclass(frozen=True)
class _Ranked:
    """Ranks of the examples of queries, from 1 on.

    Attributes:
        relevances: 0 where a query has no more examples, shape [Q, M].
        filled: shape [Q, M].
        before: how surely example j comes before example i, shape [B, Q, i, j].
        smooth: whether steps are smooth.
    """

    relevances: Tensor
    filled: Tensor
    before: Tensor
    smooth: bool

    @classmethod
    def of(
        cls, scores: Tensor, targets: Tensor, table: _Table, *, smooth: bool
    ) -> "_Ranked":
        """Return the ranks of scores [B, N] of examples with relevances [N]."""
        each = scores[:, table.places]
        apart = each[:, :, None] - each[:, :, :, None]
        if smooth:
            width = SMOOTHNESS * scores.detach().std() + SMALL
            before = (apart / width).sigmoid()
        else:
            before = (apart > 0).to(scores) + (apart == 0).to(scores) / 2
        itself = torch.eye(each.shape[-1], dtype=torch.bool, device=scores.device)
        both = table.filled[:, :, None] & table.filled[:, None] & ~itself
        relevances = targets[table.places] * table.filled
        return cls(relevances.double(), table.filled, before.double() * both, smooth)

    def means(self, shares: Tensor) -> Groups:
        """Return means over queries with shares [B, Q]."""
        relevant = (self.relevances > 0).double()
        rest = self.filled.double() - relevant
        found, others = relevant.sum(1), rest.sum(1)
        ranks = 1 + self.before.sum(-1)
        among = torch.stack([self._within(ranks, cut) for cut in CUTS], -1)
        hits = among * relevant[..., None]
        right = 1 + self.before @ relevant[..., None]
        each = {
            **self._gains(ranks, among),
            "hits": 1 - (1 - hits).clamp_min(SMALL).log().sum(2).exp(),
            "recalls": hits.sum(2) / found.clamp_min(1)[:, None],
            "precisions": hits.sum(2) / ranks.new_tensor(CUTS),
            "reciprocal rank": (relevant / ranks).amax(2)[..., None],
            "average precision": (
                (relevant * right[..., 0] / ranks).sum(2) / found.clamp_min(1)
            )[..., None],
        }
        ahead = (self.before @ relevant[..., None])[..., 0] * rest
        pairs = (found * others).clamp_min(1)
        means = {
            name: _mean(values, shares * (found > 0)) for name, values in each.items()
        }
        area = (ahead.sum(2) / pairs)[..., None]
        means["area"] = _mean(area, shares * (found * others > 0))
        means["gains and hits"] = torch.cat([means["gains"], means["hits"]], 1)
        return means

    def _within(self, ranks: Tensor, cut: int) -> Tensor:
        """Return whether ranks [B, Q, M] are among the first."""
        if self.smooth:
            return ((cut + 0.5 - ranks) / STEP).sigmoid()
        return (ranks <= cut).double()

    def _gains(self, ranks: Tensor, among: Tensor) -> dict[str, Tensor]:
        """Return discounted gains as shares of the greatest, by the kind of gain.

        Source: Jarvelin and Kekalainen, ACM TOIS 2002; 2^relevance - 1, Burges et al.,
        ICML 2005.
        """
        kinds = {"": self.relevances.exp2() - 1, "linear ": self.relevances}
        if bool((self.relevances <= 1).all()):
            del kinds["linear "]
        places = torch.arange(1, ranks.shape[-1] + 1).to(ranks)
        found = {}
        for name, gains in kinds.items():
            best = (gains.sort(1, descending=True).values / (1 + places).log2()).cumsum(
                1
            )
            reached = gains / (1 + ranks).log2()
            last = [min(cut, best.shape[1]) - 1 for cut in CUTS]
            whole = reached.sum(2) / best[:, -1].clamp_min(SMALL)
            cuts = (reached[..., None] * among).sum(2) / best[:, last].clamp_min(SMALL)
            found[f"{name}gain"] = whole[..., None]
            found[f"{name}gains"] = cuts
            for place, cut in enumerate(CUTS):
                found[f"{name}gain at {cut}"] = cuts[..., place : place + 1]
        return found


def _mean(values: Tensor, shares: Tensor) -> Tensor:
    """Return means of [B or 1, Q, v] with shares [B, Q], shape [B, v]."""
    whole = shares / shares.sum(1, keepdim=True).clamp_min(SMALL)
    return (whole.double()[:, None] @ values)[:, 0]

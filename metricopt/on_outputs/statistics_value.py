"""A value function of statistics: the metric, learned from a few queries of it.

An exact Gaussian process on the statistics of the queried phi. Its kernel sums a linear
one for every group, so that few queries determine a metric that is linear in a group,
and a radial one for what is curved. Predictions are averaged over a grid of weights,
lengths and noises, each weighted by its marginal likelihood: where few points allow
several explanations, the deviation says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from metricopt.statistics.contract import Family, Groups, Statistics
from metricopt.tasks.observed_statistics import ObservedStatistics

CURVED = (0.0, 0.01, 0.1, 1.0)
"""Weights of the radial kernel beside the linear ones, which sum to 1."""
LENGTHS = (1.0, 3.0)
"""Lengths of the radial kernel, in root-mean-square distances of the queries."""
NOISES = (1e-8, 1e-6, 1e-4, 1e-2)
"""Variances of the noise, relative to the variance of the signal."""
LEAST_WEIGHT = 0.01
"""Explanations of less posterior weight than this share of the best are dropped."""
SMALL = 1e-12


class _Explanations(NamedTuple):
    """M settings of the kernel.

    Attributes:
        groups: names of the groups with a linear kernel.
        nears: names of the groups with a radial kernel.
        linear: weight of the linear kernel of every group, [M, groups].
        family: index of the family, [M].
        near: index of the radial kernel, [M].
        curved: weight of the radial kernel, [M].
        length: length of the radial kernel, [M].
        noise: relative variance of the noise, [M].
    """

    groups: Sequence[str]
    nears: Sequence[str]
    linear: Tensor
    family: Tensor
    near: Tensor
    curved: Tensor
    length: Tensor
    noise: Tensor

    def at(self, index: Tensor) -> "_Explanations":
        """Return some of them, without the kernels that have no weight in any."""
        linear, curved = self.linear[index], self.curved[index]
        straight = linear.any(0).nonzero().flatten()
        bent = self.near[index][curved > 0].unique()
        # Where `curved` is 0 the index says nothing; it is -1 if no kernel is left.
        near = torch.searchsorted(bent, self.near[index]).clamp(max=len(bent) - 1)
        return _Explanations(
            [self.groups[place] for place in straight.tolist()],
            [self.nears[place] for place in bent.tolist()],
            linear[:, straight],
            self.family[index],
            near,
            curved,
            self.length[index],
            self.noise[index],
        )


def _grid(names: Sequence[str], families: Sequence[Family]) -> _Explanations:
    """Return every group alone, and all of a family alike, with every other setting."""
    curved = [(0.0, 1.0)] + [(c, ell) for c, ell in product(CURVED[1:], LENGTHS)]
    linear, others = [], []
    for place, family in enumerate(families):
        sets = [family.groups]
        if family.alone and len(family.groups) > 1:
            sets += [(name,) for name in family.groups]
        for chosen in sets:
            weight = torch.tensor([name in chosen for name in names]).double()
            weight /= weight.sum()
            for (curve, length), noise in product(curved, NOISES):
                linear.append(weight)
                others.append((place, curve, length, noise))
    places, curves, lengths, noises = torch.tensor(others, dtype=torch.float64).T
    return _Explanations(
        names,
        [family.near for family in families],
        torch.stack(linear),
        places.long(),
        places.long(),
        curves,
        lengths,
        noises,
    )


class CostOfStatistics(Protocol):
    """What predicts costs from statistics: of one metric, or of one with bounds."""

    @property
    def reads(self) -> frozenset[str]:
        """Names of the groups that predictions are made from."""

    def predict(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the cost of B rows, each [B]."""

    def means(self, groups: Groups) -> Tensor:
        """Return the mean of all that is predicted of B rows, [B, 1 + M]."""


class StatisticsValueFunction:
    """Predicts costs from statistics, after a few that were observed.

    The first of n observed points, [n, q] by group, is the centre of the linear
    kernels; costs are [n], n >= 2. The metric is taken to be a function of one of the
    families.
    """

    def __init__(
        self, groups: Groups, costs: Tensor, families: Sequence[Family]
    ) -> None:
        self.families = families
        grid = _grid(
            sorted({name for family in families for name in family.groups}), families
        )
        self._centre = {name: values[0].double() for name, values in groups.items()}
        self._points = self._offsets(groups, grid)
        moved = {
            name: self._points[name][1:].square().sum(1).mean() for name in grid.groups
        }
        # What no query moved may differ on other examples, by any number of its scales.
        self._scale = {
            name: torch.where(each > SMALL, each, torch.inf)
            for name, each in moved.items()
        }
        pairs = max(1, len(costs) * (len(costs) - 1))
        self._distance = {
            near: torch.cdist(self._points[near], self._points[near]).square().sum()
            / pairs
            for near in grid.nears
        }
        self._fit(grid, costs.double())

    def predict(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the cost of B rows, from groups [B, q].

        Each is [B], float64, differentiable in the statistics; the deviation is that of
        the metric's value, not of what noise adds.
        """
        offsets = self._offsets(groups, self._kept)
        across = self._kernel(offsets, self._points, self._kept)  # [M, B, n]
        own = self._own(offsets, self._kept)  # [M, B]
        means = self._level[:, None] + torch.einsum("mbn,mn->mb", across, self._alpha)
        solved = torch.linalg.solve_triangular(
            self._root, across.transpose(1, 2), upper=False
        )
        lacking = 1 - torch.einsum("mbn,mn->mb", across, self._ones)
        variance = own - solved.square().sum(1) + lacking.square() / self._precision
        variances = self._signal[:, None] * variance.clamp_min(SMALL)
        weight = self._weight[:, None]
        mean = (weight * means).sum(0)
        spread = (weight * (variances + (means - mean).square())).sum(0)
        return mean, spread.clamp_min(SMALL**2).sqrt()

    def means(self, groups: Groups) -> Tensor:
        """Return the mean of the cost of B rows, [B, 1]."""
        return self.predict(groups)[0][:, None]

    @property
    def reads(self) -> frozenset[str]:
        """Names of the groups that the kept explanations take."""
        return frozenset({*self._kept.groups, *self._kept.nears})

    @property
    def shares(self) -> Tensor:
        """Posterior weight of every family, shape [families], summing to 1."""
        found = torch.zeros(len(self.families), dtype=torch.float64)
        return found.index_add(0, self._kept.family, self._weight)

    @property
    def left_out_errors(self) -> Tensor:
        """Errors of what is predicted of each point by all others, shape [n]."""
        inverse = torch.cholesky_inverse(self._root)
        own = inverse.diagonal(dim1=1, dim2=2) - self._ones.square() / self._precision
        errors: Tensor = self._alpha / own.clamp_min(SMALL)
        return torch.einsum("m,mn->n", self._weight, errors)

    def _offsets(self, groups: Groups, settings: _Explanations) -> Groups:
        """Return distances to the first point in the groups that settings use."""
        needed = dict.fromkeys([*settings.groups, *settings.nears])
        return {name: groups[name].double() - self._centre[name] for name in needed}

    def _kernel(self, one: Groups, other: Groups, settings: _Explanations) -> Tensor:
        """Return the kernel of [B] against [n] points for every setting, [M, B, n]."""
        linear = torch.stack(
            [one[name] @ other[name].T / self._scale[name] for name in settings.groups]
        )
        total = torch.einsum("mg,gbn->mbn", settings.linear, linear)
        if not settings.nears:
            return total
        distances = torch.stack(
            [
                (one[near][:, None] - other[near]).square().sum(-1)
                / (2 * self._distance[near].clamp_min(SMALL))
                for near in settings.nears
            ]
        )
        lengths = settings.length.square()[:, None, None]
        radial = torch.exp(-distances[settings.near] / lengths)
        return total + settings.curved[:, None, None] * radial

    def _own(self, points: Groups, settings: _Explanations) -> Tensor:
        """Return the kernel of every point with itself, [M, B]."""
        linear = torch.stack(
            [
                points[name].square().sum(1) / self._scale[name]
                for name in settings.groups
            ]
        )
        total = torch.einsum("mg,gb->mb", settings.linear, linear)
        return total + settings.curved[:, None]

    def _fit(self, grid: _Explanations, costs: Tensor) -> None:
        """Keep the settings that explain the costs, by restricted likelihood."""
        n = len(costs)
        # Noise comes last in the grid, and the kernel does not depend on it.
        noiseless = grid.at(torch.arange(0, len(grid.noise), len(NOISES)))
        kernel = self._kernel(self._points, self._points, noiseless)
        kernel = kernel.repeat_interleave(len(NOISES), 0)
        identity = torch.eye(n, dtype=torch.float64)
        root, failed = torch.linalg.cholesky_ex(
            kernel + (grid.noise + 1e-10)[:, None, None] * identity
        )
        both = torch.stack([torch.ones_like(costs), costs], 1)
        solved = torch.cholesky_solve(both.expand(len(root), -1, -1), root)
        ones, scaled = solved[..., 0], solved[..., 1]
        precision = ones.sum(1)
        level = scaled.sum(1) / precision
        alpha = scaled - level[:, None] * ones
        # The signal variance that is likeliest, profiled out; a floor keeps costs that
        # do not move at all from being infinitely likely.
        signal = ((costs * alpha).sum(1) / max(1, n - 1)).clamp_min(SMALL)
        determinant = 2 * root.diagonal(dim1=1, dim2=2).log().sum(1)
        likelihood = -0.5 * ((n - 1) * signal.log() + determinant + precision.log())
        likelihood = likelihood.masked_fill(failed != 0, -torch.inf).nan_to_num(
            nan=-torch.inf
        )
        weight = (likelihood - likelihood.max()).exp()
        kept = (weight >= LEAST_WEIGHT).nonzero().flatten()
        self._kept = grid.at(kept)
        self._weight = weight[kept] / weight[kept].sum()
        self._root, self._ones, self._alpha = root[kept], ones[kept], alpha[kept]
        self._level, self._signal = level[kept], signal[kept]
        self._precision = precision[kept][:, None]


EXPLAINING = 0.01
"""Kinds of statistics count that have this share of the posterior, or more."""
FEWEST, ALONE = 6, 0.05
"""Queries after which the first kind may explain a metric alone, and the error, in
spreads of the observed costs, that none of them may exceed then."""


@dataclass(frozen=True)
class Explained:
    """What is known of a metric.

    Attributes:
        value: the value function.
        statistics: which it is a function of: no more kinds than are needed, and of
            them the groups that it reads.
        groups: groups of all queries, [n, q] each.
    """

    value: CostOfStatistics
    statistics: ObservedStatistics
    groups: Groups

    @classmethod
    def by(
        cls,
        value: CostOfStatistics,
        kind: Statistics,
        statistics: ObservedStatistics,
        groups: Groups,
    ) -> Self:
        """Return what a value function of one kind knows, of statistics of more."""
        return cls(value, statistics.of_kind(kind.read_in(value.reads)), groups)

    def of_these(self, groups: Groups) -> Groups:
        """Return the groups of these statistics, of groups of more kinds."""
        return self.statistics.kind.of_these(groups)


def explain(statistics: ObservedStatistics, groups: Groups, costs: Tensor) -> Explained:
    """Fit a value function, and drop the kinds of statistics that explain nothing.

    The n queries have groups [n, q] each, and costs [n].
    """
    kind = statistics.kind
    simple = _simplest(statistics, groups, costs)
    if simple is not None:
        return simple
    value = _value_of(kind, groups, costs)
    needed = _needed(value, kind)
    if len(needed) == len(kind.names()):
        return Explained.by(value, kind, statistics, groups)
    return _of_kind(statistics, kind.only(needed), groups, costs)


def _simplest(
    statistics: ObservedStatistics, groups: Groups, costs: Tensor
) -> Explained | None:
    """Return what is known if the first kind alone says all of it, else None.

    It does if its value function predicts every query from the others.
    """
    kind = statistics.kind
    first, *others = kind.names()
    if not others or len(costs) < FEWEST:
        return None
    alone = kind.only((first,))
    known = alone.of_these(groups)
    value = _value_of(alone, known, costs)
    spread = costs.std(correction=0)
    wrong = value.left_out_errors.abs().max() > ALONE * spread
    if bool(wrong) or not bool(spread > 0):
        return None
    return Explained.by(value, alone, statistics, known)


def _of_kind(
    statistics: ObservedStatistics, kind: Statistics, groups: Groups, costs: Tensor
) -> Explained:
    """Return what is known by a kind of statistics that is among all."""
    known = kind.of_these(groups)
    return Explained.by(_value_of(kind, known, costs), kind, statistics, known)


def _value_of(
    kind: Statistics, groups: Groups, costs: Tensor
) -> StatisticsValueFunction:
    """Return the value function of a kind of statistics that has these groups."""
    return StatisticsValueFunction(groups, costs, kind.families(groups))


def needed_kinds(
    statistics: ObservedStatistics, groups: Groups, costs: Tensor
) -> tuple[str, ...]:
    """Return the names of the kinds that explain a metric that is bounded."""
    kind = statistics.kind
    if _simplest(statistics, groups, costs) is not None:
        return kind.names()[:1]
    families = kind.bounded_families(groups)
    return _needed(StatisticsValueFunction(groups, costs, families), kind)


def _needed(value: StatisticsValueFunction, kind: Statistics) -> tuple[str, ...]:
    """Return the names of the kinds, of all, that explain something."""
    names = kind.names()
    shares = dict.fromkeys(names, 0.0)
    for family, share in zip(value.families, value.shares.tolist(), strict=True):
        if family.kind:
            shares[family.kind] += share
    if sum(shares.values()) < 1 - EXPLAINING:
        return names
    return tuple(name for name, share in shares.items() if share > EXPLAINING)

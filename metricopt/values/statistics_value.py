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

import torch
from torch import Tensor

from metricopt.statistics.contract import Groups

CURVED = (0.0, 0.01, 0.1, 1.0)
"""Weights of the radial kernel beside the linear ones, which sum to 1."""
LENGTHS = (1.0, 3.0)
"""Its length, in root-mean-square distances of the queried points."""
NOISES = (1e-8, 1e-6, 1e-4, 1e-2)
"""Variances of the noise, relative to that of the signal."""
LEAST_WEIGHT = 0.01
"""Explanations of less posterior weight than this share of the best are dropped."""
SMALL = 1e-12


@dataclass(frozen=True)
class _Explanations:
    """G settings of the kernel.

    Attributes:
        linear: weight of the linear kernel of every group, [G, groups].
        curved: weight of the radial kernel, [G].
        length: of the radial kernel, [G].
        noise: relative variance of the noise, [G].
    """

    linear: Tensor
    curved: Tensor
    length: Tensor
    noise: Tensor

    def at(self, index: Tensor) -> "_Explanations":
        """Return some of them."""
        return _Explanations(
            self.linear[index],
            self.curved[index],
            self.length[index],
            self.noise[index],
        )


def _grid(groups: int) -> _Explanations:
    """Return every group alone, and all alike, with every other setting."""
    alone = torch.eye(groups, dtype=torch.float64)
    mixed = torch.full((1, groups), 1 / groups, dtype=torch.float64)
    linear = torch.cat([alone, mixed]) if groups > 1 else alone
    curved = [(0.0, 1.0)] + [(c, ell) for c, ell in product(CURVED[1:], LENGTHS)]
    cells = list(product(range(len(linear)), curved, NOISES))
    return _Explanations(
        linear[[cell[0] for cell in cells]],
        torch.tensor([cell[1][0] for cell in cells], dtype=torch.float64),
        torch.tensor([cell[1][1] for cell in cells], dtype=torch.float64),
        torch.tensor([cell[2] for cell in cells], dtype=torch.float64),
    )


class StatisticsValueFunction:
    """Predicts costs from statistics, after a few that were observed.

    Args:
        groups: statistics of n observed points, each [n, q]; the first is the centre of
            the linear kernels.
        costs: observed costs, shape [n], n >= 2.
        near: the group the radial kernel measures distances in.
    """

    def __init__(self, groups: Groups, costs: Tensor, *, near: str) -> None:
        self.names: Sequence[str] = sorted(groups)
        self._near = near
        self._centre = {name: groups[name][0] for name in self.names}
        offsets = self._offsets(groups)
        self._scale = {
            name: part[1:].square().sum(1).mean().clamp_min(SMALL)
            for name, part in offsets.items()
        }
        distances = torch.cdist(offsets[near], offsets[near]).square()
        self._distance = distances.sum() / max(1, len(costs) * (len(costs) - 1))
        self._points = offsets
        self._fit(costs.double())

    def predict(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the cost of B rows.

        Args:
            groups: statistics by group, each [B, q].

        Returns:
            Mean and deviation, float64, each [B], differentiable in the statistics; the
            deviation is that of the metric's value, not of what noise adds.
        """
        offsets = self._offsets(groups)
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

    def _offsets(self, groups: Groups) -> Groups:
        return {name: groups[name].double() - self._centre[name] for name in self.names}

    def _kernel(self, one: Groups, other: Groups, settings: _Explanations) -> Tensor:
        """Return the kernel of [B] against [n] points for every setting, [M, B, n]."""
        linear = torch.stack(
            [one[name] @ other[name].T / self._scale[name] for name in self.names]
        )
        total = torch.einsum("mg,gbn->mbn", settings.linear, linear)
        near = self._near
        squared = (one[near][:, None] - other[near]).square().sum(-1)
        lengths = 2 * self._distance.clamp_min(SMALL) * settings.length.square()
        radial = torch.exp(-squared / lengths[:, None, None])
        return total + settings.curved[:, None, None] * radial

    def _own(self, points: Groups, settings: _Explanations) -> Tensor:
        """Return the kernel of every point with itself, [M, B]."""
        linear = torch.stack(
            [points[name].square().sum(1) / self._scale[name] for name in self.names]
        )
        total = torch.einsum("mg,gb->mb", settings.linear, linear)
        return total + settings.curved[:, None]

    def _fit(self, costs: Tensor) -> None:
        """Keep the settings that explain the costs, by restricted likelihood."""
        grid, n = _grid(len(self.names)), len(costs)
        kernel = self._kernel(self._points, self._points, grid)
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

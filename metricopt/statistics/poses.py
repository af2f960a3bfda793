"""Statistics of poses: rates of joints within distances, and of persons that are alike.

The share of correct key points is linear in the rates. Average precision depends on the
order of the persons, too, and is no function of these alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.metrics.poses import SIGMAS, THRESHOLDS, sigmas_of
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.structured.poses import (
    are_poses,
    decoded,
    distances,
    labelled,
    similarities,
)

WITHIN = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""Distances in reference lengths."""
SHARPNESS = 30.0
"""Inverse temperature of the mean place of a heat map whose peaks are about 1."""
WIDTH, WIDTH_ALIKE = 0.03, 0.03
"""Widths of the smooth steps at a distance, and at a similarity."""


@STATISTICS.register("poses")
@dataclass(frozen=True)
class PoseStatistics(Statistics):
    """Rates of joints within distances, of each joint and of all, and similarities."""

    name = "poses"
    near = "rates"

    @property
    def reads(self) -> Reads:
        """Heat maps of joints."""
        return "poses"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether these are heat maps of joints of which one is labelled."""
        return are_poses(targets) and bool(labelled(targets).any())

    def sizes(self, targets: Tensor) -> dict[str, int]:
        """Return how many joints count, and of how many persons."""
        return {"joints": int(labelled(targets).sum()), "persons": len(targets)}

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of heat maps [B, N, J, H, W] and poses [N, J + 1, 3].

        Smooth ones move with the mean place of every map; weights [B, N] are of
        persons.
        """
        points = mean_places(outputs) if smooth else decoded(outputs)[0]
        if weights is None:
            weights = points.new_ones(1, len(targets))
        shares = weights.double().expand(len(points), -1)
        known = labelled(targets).double()
        levels = points.new_tensor(WITHIN).double()
        below = _steps(levels - distances(points, targets)[..., None], WIDTH, smooth)
        joints = torch.einsum("bn,nj->bj", shares, known)
        near = torch.einsum("bn,nj,bnjl->bjl", shares, known, below)
        rates = near / joints.clamp_min(1e-12)[..., None]
        every = near.sum(1) / joints.sum(1).clamp_min(1e-12)[:, None]
        found = {"rates": rates.flatten(1), "mean rates": every}
        if outputs.shape[2] in SIGMAS:
            found |= self._alike(points, targets, shares, smooth)
        return found

    def _alike(
        self, points: Tensor, targets: Tensor, shares: Tensor, smooth: bool
    ) -> Groups:
        """Return the shares of persons whose similarity is above thresholds."""
        sigmas = sigmas_of(points.shape[2]).to(points.device)
        found = similarities(points, targets, sigmas)
        levels = found.new_tensor(THRESHOLDS)
        above = _steps(found[..., None] - levels, WIDTH_ALIKE, smooth)
        seen = shares * labelled(targets).any(1)
        total = seen.sum(1, keepdim=True).clamp_min(1e-12)
        alike = torch.einsum("bn,bnt->bt", seen, above) / total
        return {"similarities": alike, "mean similarities": alike.mean(1, keepdim=True)}


def mean_places(maps: Tensor) -> Tensor:
    """Return where heat maps see joints on average, differentiable, [..., J, 2].

    Source: Sun et al., ECCV 2018 (integral regression).
    """
    height, width = maps.shape[-2:]
    shares = (SHARPNESS * maps.flatten(-2)).softmax(-1).unflatten(-1, (height, width))
    column = torch.arange(width).to(maps)
    row = torch.arange(height).to(maps)
    x, y = shares.sum(-2) @ column, shares.sum(-1) @ row
    return torch.stack([x, y], -1)


def _steps(above: Tensor, width: float, smooth: bool) -> Tensor:
    """Return whether numbers are positive, as 0 and 1, or with smooth steps."""
    return (above / width).sigmoid() if smooth else (above > 0).double()

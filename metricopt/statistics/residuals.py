"""Statistics of predicted values: moments, shares and quantiles of their residuals.

A residual is the value minus the target. Most metrics of values are linear in the mean
of some function of it: the pinball loss in its positive and its negative part, R2 in
its square. All but the shares below levels are differentiable as they are.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads, logarithms_of
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.statistics.strata import strata_of_numbers

LEVELS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Residuals, in deviations of the targets, below which examples are counted."""
WITHIN = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Relative errors below which examples are counted."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
SMOOTHNESS = 0.15
"""Width of the smooth step at a level, in deviations of the residuals, or as a factor
of a relative error."""
APART = 8
"""Most outputs whose shares are distances of their own."""
TINY = torch.finfo(torch.float64).eps
"""Least target that a relative error divides by, as in scikit-learn."""
SMALL = 1e-12


@STATISTICS.register("residuals")
@dataclass(frozen=True)
class ResidualStatistics(Statistics):
    """Means of functions of residuals, over examples and outputs, and by output.

    Outputs are values [B, N, T], targets numbers [N, T], or [N] for one output.

    Attributes:
        spread: standard deviation of the targets, the unit of all residuals.
    """

    spread: float = 1.0
    name: ClassVar[str] = "residuals"
    near: ClassVar[str] = "shares"

    @property
    def reads(self) -> Reads:
        """Predicted values."""
        return "values"

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics in units of the spread of all targets."""
        spread = targets.double().reshape(len(targets), -1).std(0).mean().item()
        return replace(self, spread=spread if spread > SMALL else 1.0)

    def strata(self, targets: Tensor) -> Tensor:
        """Return ranges of targets as numbers [N]."""
        return strata_of_numbers(targets)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the residuals, if wanted with smooth steps at levels."""
        return self._residuals(outputs, targets, weights).groups(smooth)

    def _residuals(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None
    ) -> "_Residuals":
        values = outputs.double() / self.spread
        truth = (targets.reshape(outputs.shape[1:]) / self.spread).to(values)
        if weights is None:
            weights = values.new_ones(1, len(truth))
        shares = weights.to(values).expand(len(values), -1)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(SMALL)
        return _Residuals(values, truth, shares, self.spread)


@STATISTICS.register("residuals of amounts")
@dataclass(frozen=True)
class AmountStatistics(ResidualStatistics):
    """The same of amounts: shares are those of the residuals of their logarithms.

    Of amounts of any size, few have residuals that are large beside the spread. There
    the target 0, as of most insurance claims, counts as the mean.

    Attributes:
        log_spread: standard deviation of the logarithms of the targets.
        mean: mean of the targets.
    """

    log_spread: float = 1.0
    mean: float = 1.0
    name: ClassVar[str] = "residuals of amounts"

    @property
    def reads(self) -> Reads:
        """Predicted values that stay positive."""
        return "amounts"

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics in units of both spreads of all targets."""
        logs = logarithms_of(targets).reshape(len(targets), -1)
        spread = logs.std(0).mean().item()
        return replace(
            super().fitted(targets),
            log_spread=spread if spread > SMALL else 1.0,
            mean=max(targets.double().mean().item(), SMALL),
        )

    def _residuals(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None
    ) -> "_Residuals":
        found = super()._residuals(outputs, targets, weights)
        return replace(found, logarithms=(self.log_spread, self.mean / self.spread))


@dataclass(frozen=True)
class _Residuals:
    """Values [B, N, T], targets [N, T] and shares of the examples [B, N].

    Values and targets are in units of a spread. Of amounts there is the spread of their
    logarithms, too, and what the target 0 counts as in these.
    """

    values: Tensor
    targets: Tensor
    shares: Tensor
    spread: float
    logarithms: tuple[float, float] | None = None

    def groups(self, smooth: bool) -> Groups:
        """Return all groups, if wanted with smooth steps at levels."""
        return self.moments() | self.ratios() | self.shares_of(smooth)

    @property
    def residuals(self) -> Tensor:
        """Shape [B, N, T]."""
        return self.values - self.targets

    def mean(self, each: Tensor) -> Tensor:
        """Return the mean over examples of [B or 1, N, T], shape [B, T]."""
        found: Tensor = (self.shares[:, None] @ each)[:, 0]
        return found

    def moments(self) -> Groups:
        """Return means that are linear in the examples, and their roots."""
        residuals, values = self.residuals, self.values * self.spread
        targets = (self.targets * self.spread).expand_as(values)
        size = residuals.abs()
        above, below = residuals.clamp_min(0), (-residuals).clamp_min(0)
        unit = self.targets.abs().clamp_min(TINY / self.spread)
        logs = (
            values.clamp_min(SMALL - 1).log1p() - targets.clamp_min(SMALL - 1).log1p()
        )
        means = {
            "parts": [above, below],
            "sizes": [size],
            "squares": [residuals.square()],
            "relative parts": [above / unit, below / unit],
            "relative sizes": [size / unit],
            "symmetric": [size / (self.values.abs() + self.targets.abs() + SMALL)],
            "logs": [logs.square()],
            "deviances": [residuals, *_deviances(values, targets)],
        }
        if self.logarithms is not None:
            means["deviances between"] = _between(values, targets)
        groups = {}
        for name, kinds in means.items():
            by_output = torch.stack([self.mean(each) for each in kinds], -1)
            groups[name] = by_output.mean(1)
            if by_output.shape[1] > 1:
                groups[f"{name} by output"] = by_output.flatten(1)
        for name in ("squares", "logs"):
            groups[f"root of {name}"] = (groups[name] + SMALL).sqrt()
        return groups

    def ratios(self) -> Groups:
        """Return what relates residuals to the spread of the targets, or of values."""
        targets = self.targets[None].expand_as(self.values)
        ours, theirs = self.mean(self.values), self.mean(targets)
        error, bias = self.mean(self.residuals.square()), ours - theirs
        own = self.mean((self.values - ours[:, None]).square())
        spread = self.mean((targets - theirs[:, None]).square()).clamp_min(SMALL)
        joint = (own + spread - (error - bias.square())) / 2  # their covariance
        ratios = {
            "unexplained": error / spread,
            "unexplained variance": (error - bias.square()) / spread,
            "correlation": joint / (own * spread + SMALL).sqrt(),
            "concordance": 2 * joint / (own + spread + bias.square()),
        }
        return {name: each.mean(1, keepdim=True) for name, each in ratios.items()}

    def shares_of(self, smooth: bool) -> Groups:
        """Return shares of examples below levels, and quantiles of residuals."""
        residuals = self.residuals
        if self.logarithms is not None:
            spread, mean = self.logarithms
            truth = self.targets.where(self.targets > 0, mean).log()
            residuals = (self.values.clamp_min(SMALL).log() - truth) / spread
        levels = residuals.new_tensor((*(-level for level in LEVELS), 0.0, *LEVELS))
        constant = residuals.detach()
        width = SMOOTHNESS * (self.mean(constant.square()) + SMALL).sqrt()
        below = levels - residuals[..., None]
        within = residuals.new_tensor(WITHIN).log()
        relative = self.residuals.abs() / self.targets.abs().clamp_min(SMALL)
        near = within - relative.clamp_min(SMALL)[..., None].log()
        if smooth:
            below = (below / width[:, None, :, None]).sigmoid()
            near = (near / SMOOTHNESS).sigmoid()
        else:
            below, near = (below >= 0).double(), (near >= 0).double()
        found = torch.einsum("bn,bntj->btj", self.shares, below)
        if found.shape[1] > APART:
            found = found.mean(1, keepdim=True)
        quantiles = self._quantiles(self.residuals.abs()).mean(1)
        middle = QUANTILES.index(0.5)
        return {
            "shares": found.flatten(1),
            "within": torch.einsum("bn,bntj->btj", self.shares, near).mean(1),
            "quantiles": quantiles,
            "median": quantiles[:, middle : middle + 1],
            "greatest": quantiles[:, -1:],
        }

    def _quantiles(self, sizes: Tensor) -> Tensor:
        """Return weighted quantiles of [B, N, T], shape [B, T, Q]; halves are means."""
        ordered, order = sizes.transpose(1, 2).sort(-1)
        shares = self.shares[:, None].expand_as(ordered).gather(-1, order)
        reached = shares.cumsum(-1).contiguous()
        wanted = reached.new_tensor(QUANTILES).expand(*reached.shape[:2], -1)
        sides = (wanted * reached[..., -1:] + sign * TIE for sign in (-1, 1))
        last = (shares > 0).cumsum(-1).argmax(-1, keepdim=True)
        places = [torch.searchsorted(reached, side).minimum(last) for side in sides]
        return torch.stack([ordered.gather(-1, place) for place in places]).mean(0)


TIE = 1e-9
"""Difference of two sums of shares that is rounding."""


BETWEEN = (1.25, 1.5, 1.75)
"""Powers of Tweedie between those of Poisson and gamma, 1 and 2."""


def _between(values: Tensor, targets: Tensor) -> list[Tensor]:
    """Return the two terms of the deviance of Tweedie at every power between."""
    values, targets = values.clamp_min(SMALL), targets.clamp_min(0)
    pairs = ((targets * values ** (1 - p), values ** (2 - p)) for p in BETWEEN)
    return [term for pair in pairs for term in pair]


def _deviances(values: Tensor, targets: Tensor) -> list[Tensor]:
    """Return terms of the deviances of Poisson and gamma, 0 where values are targets.

    The deviance of Poisson needs the residual and the first of these, that of gamma
    the other two.
    """
    values, positive = values.clamp_min(SMALL), targets.clamp_min(SMALL)
    logs = values.log() - positive.log()
    return [targets.clamp_min(0) * logs, logs, positive / values - 1]

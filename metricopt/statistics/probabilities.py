"""Statistics of probabilities: how sure the network is, and how often it is right.

Proper scores and calibration errors are functions of them: log loss is linear in how
often the right class has at least a given probability.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads, class_logits
from metricopt.statistics.contract import STATISTICS, Groups, PartlyRead
from metricopt.statistics.many_classes import MANY

LEVELS = (
    *(0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.35),
    *(0.5, 0.65, 0.8, 0.9, 0.95, 0.99, 0.999),
)
RANKS = 5
SMOOTHNESS = 0.25
"""Width of the smooth step at a level, in units of log odds."""
SMALL = 1e-6
LEAST = {
    "mean logarithm": torch.finfo(torch.float32).eps,
    "mean logarithm from 1e-15": 1e-15,
    "mean logarithm of doubles": torch.finfo(torch.float64).eps,
    "mean logarithm from e^-100": math.exp(-100),
}
"""Probabilities to which lower ones are raised in a mean logarithm: every library has
a floor of its own, and of sure networks a few examples are worth all the others."""
SQUARED = "squared error"
SCORES = (*LEAST, SQUARED)


@STATISTICS.register("probabilities")
@dataclass(frozen=True)
class ProbabilityStatistics(PartlyRead):
    """Shares of examples whose right or first class has at least some probability."""

    name: ClassVar[str] = "probabilities"
    near: ClassVar[str] = "right"
    scores: ClassVar[tuple[str, ...]] = SCORES

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the softmax, if wanted with smooth steps at levels."""
        return _groups(self, outputs, targets, weights, smooth=smooth)


@STATISTICS.register("label-probabilities")
@dataclass(frozen=True)
class LabelProbabilityStatistics(PartlyRead):
    """The same of single labels: every pair of example and label is one example.

    Outputs are logits [B, N, K] of K labels, targets zeros and ones [N, K].
    """

    name: ClassVar[str] = "label probabilities"
    near: ClassVar[str] = "right"
    scores: ClassVar[tuple[str, ...]] = SCORES

    @property
    def reads(self) -> Reads:
        """Logits of labels."""
        return "labels"

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the sigmoids, if wanted with smooth steps at levels."""
        if weights is not None:
            weights = weights.repeat_interleave(outputs.shape[-1], 1)
        pairs = outputs.flatten(1)[..., None]
        return _groups(self, pairs, targets.flatten(), weights, smooth=smooth)


def _groups(
    kind: PartlyRead,
    outputs: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    *,
    smooth: bool,
) -> Groups:
    """Return the groups of outputs [B, N, C] and labels [N], weighted [B, N].

    One row of many classes that is expanded is read once.
    """
    count = len(outputs)
    if outputs.stride(0) == 0 and outputs.shape[-1] > MANY:
        outputs = outputs[:1]
    logs = class_logits(outputs).log_softmax(-1)
    rows = targets.long()[None, :, None].expand(len(logs), -1, -1)
    own = logs.gather(-1, rows)
    # Log odds of the right class against all others.
    others = logs.scatter(-1, rows, -torch.inf)
    right = own[..., 0] - others.logsumexp(-1)
    if weights is None:
        weights = logs.new_ones(1, len(targets))
    share = weights.to(logs).expand(count, -1)
    share = share / share.sum(1, keepdim=True).clamp_min(SMALL)
    groups = {"right": torch.einsum("bnj,bn->bj", _above(right, smooth), share)}
    if kind.is_read("confident", "confident and right"):
        groups |= _confident(logs, own[..., 0], others, share, smooth=smooth)
    groups |= _scores(kind, logs, own[..., 0], share)
    if logs.shape[-1] > 2 and kind.is_read("ranks"):
        groups["ranks"] = _ranks(logs, own, share, smooth)
    return {name: values.double() for name, values in groups.items()}


def _confident(
    logs: Tensor, own: Tensor, others: Tensor, share: Tensor, *, smooth: bool
) -> Groups:
    """Return how often the first class has at least some probability, and is right.

    Logarithms are [B, N, C], of the right class [B, N], of all others [B, N, C].
    """
    first, place = logs.max(-1)
    hit = (own >= first - SMALL).to(logs)
    if smooth:
        hit = ((own - others.amax(-1)) / SMOOTHNESS).sigmoid()
    sure = first - logs.scatter(-1, place[..., None], -torch.inf).logsumexp(-1)
    confident = _above(sure, smooth)
    return {
        "confident": torch.einsum("bnj,bn->bj", confident, share),
        "confident and right": torch.einsum("bnj,bn->bj", confident, share * hit),
    }


def _above(odds: Tensor, smooth: bool) -> Tensor:
    """Return which log odds [B, N] exceed which level, [B, N, J]."""
    levels = torch.logit(odds.new_tensor(LEVELS))
    beyond = odds[..., None] - levels
    return (beyond / SMOOTHNESS).sigmoid() if smooth else (beyond >= 0).to(odds)


def _scores(kind: PartlyRead, logs: Tensor, own: Tensor, share: Tensor) -> Groups:
    """Return mean proper scores, [B, 1] each: of logarithms, and Brier's.

    Logarithms are [B, N, C], those of the right class [B, N].
    """
    read = {name: least for name, least in LEAST.items() if kind.is_read(name)}
    each = {name: own.clamp_min(math.log(least)) for name, least in read.items()}
    if kind.is_read(SQUARED):
        each[SQUARED] = logs.exp().square().sum(-1) - 2 * own.exp() + 1
    return {
        name: torch.einsum("bn,bn->b", values, share)[:, None]
        for name, values in each.items()
    }


def _ranks(logs: Tensor, own: Tensor, share: Tensor, smooth: bool) -> Tensor:
    """Return the share of examples whose right class is among the first r, [B, R]."""
    beaten = logs - own
    ranks = torch.arange(RANKS).to(logs)
    if smooth:
        above = (beaten / SMOOTHNESS).sigmoid().sum(-1) - 0.5
        among = ((ranks + 0.5 - above[..., None]) / SMOOTHNESS).sigmoid()
    else:
        among = ((beaten > 0).sum(-1)[..., None] <= ranks).to(logs)
    return torch.einsum("bnr,bn->br", among, share)

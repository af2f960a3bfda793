"""Exact search of output offsets: line searches over every threshold, class by class.

Where a metric is known as a function of decisions, all decisions along a line of
offsets are counted at once: a class is decided where its margin is below the offset.
So the value function is asked for every threshold of a class, and no descent is needed.

Two things keep the search from following the noise of a few labels. Half of each label
is the calibrated probability of the network, which counts examples that happen not to
be there. And thresholds are smoothed by as much as so few examples leave them open.

Source: coordinate search of class offsets, Fan and Lin, A study on threshold selection
for multi-label classification, 2007, and Koyejo et al., NeurIPS 2014; smoothing,
Horowitz, A smoothed maximum score estimator, Econometrica 1992. Ours: the value
function in place of the metric, and labels shared with probabilities.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.on_outputs.statistics_value import CostOfStatistics
from metricopt.process.light_optimizers import LightLBFGS
from metricopt.reading.outputs import class_logits
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import SeveralStatistics, Statistics
from metricopt.statistics.many_classes import MANY
from metricopt.tasks.observed_statistics import ObservedStatistics

EXAMPLES = 20_000
"""Most examples that are counted."""
THRESHOLDS, PER_THRESHOLD = 64, 3
"""Thresholds of a line that are tried, and bins between two of them."""
SHARED = 0.5
"""How much of a label is the calibrated probability."""
WIDTH, WIDE_COUNT = 0.25, 100
"""Width of a threshold in calibrated log odds, for a class of so many examples."""
RIDGE = 1e-3
"""Penalty that keeps the offsets of calibration small."""
POWERS = (0.0, 0.5, 1.0, 1.5)
"""Powers of logit adjustment."""
LEAST_SHARE = 1e-4
SMALL = 1e-12


def offsets_of(moved: Tensor, outputs: int) -> Tensor:
    """Return what [R, K] adds to the classes, as offsets [R, C] of C outputs."""
    if outputs == 1:
        return moved[:, 1:] - moved[:, :1]
    return moved - moved.mean(1, keepdim=True)


def is_decided(statistics: ObservedStatistics) -> bool:
    """Return whether statistics are those of decisions alone, of few classes."""
    if _decisions(statistics.kind) is None:
        return False
    place = statistics.parts.get("offsets", slice(0))
    # Groups of examples may have offsets of their own.
    return len(range(statistics.size)[place]) == statistics.columns <= MANY


def _decisions(kind: Statistics) -> ConfusionStatistics | None:
    """Return the statistics of decisions, if these are all there is."""
    if not isinstance(kind, SeveralStatistics) or len(kind.kinds) > 1:
        return None
    (only,) = kind.kinds
    return only if isinstance(only, ConfusionStatistics) else None


@dataclass(frozen=True)
class Calibrated:
    """Probabilities of classes that are right on average, for R weighted samples.

    Attributes:
        scale: what outputs are multiplied by, shape [R].
        shift: what is added to them then, shape [R, K].
        probabilities: shape [R, N, K].
    """

    scale: Tensor
    shift: Tensor
    probabilities: Tensor

    def adjusted(self, share: Tensor) -> Tensor:
        """Return the offsets of logit adjustment by all powers, [S, R, K].

        A power of the share [R, K] of the labels divides the probabilities: 0 decides
        for the likeliest class, 1 for recalls that are alike.

        Source: logit adjustment, Menon et al., ICLR 2021, of calibrated probabilities.
        """
        powers = torch.tensor(POWERS)[:, None, None].to(self.shift)
        prior = share.clamp_min(LEAST_SHARE).log().to(self.shift)
        return (self.shift - powers * prior) / self.scale[:, None]


def calibrated(outputs: Tensor, targets: Tensor, weights: Tensor) -> Calibrated:
    """Return the probabilities of a scale and offsets that fit the labels best.

    Args:
        outputs: of K classes, shape [R, N, K].
        targets: labels, shape [N].
        weights: of the examples in each row, shape [R, N].

    Source: Platt, 1999; bias-corrected temperature scaling, Alexandari et al., ICML
    2020.
    """
    rows, _, classes = outputs.shape
    logs = outputs.new_zeros(rows, 1, 1, requires_grad=True)
    shift = outputs.new_zeros(rows, 1, classes, requires_grad=True)
    search = LightLBFGS([logs, shift], max_iter=40, line_search_fn="strong_wolfe")
    share = weights / weights.sum(1, keepdim=True)
    places = targets[None, :, None].expand(rows, -1, 1)

    def loss() -> Tensor:
        search.zero_grad()
        odds = (outputs * logs.exp() + shift).log_softmax(-1)
        found = -(odds.gather(-1, places)[..., 0] * share).sum()
        found = found + RIDGE * (shift.square().sum() + logs.square().sum())
        found.backward()
        return found.detach()

    with torch.enable_grad():
        search.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        scaled = outputs * logs.exp() + shift
        scale, moved = logs.exp().flatten(), shift.detach()[:, 0]
        return Calibrated(scale, moved, scaled.softmax(-1))


@dataclass(frozen=True)
class OffsetLines:
    """Line searches of offsets for R samples of the same examples at once.

    Attributes:
        value: says what decisions are worth.
        kind: the statistics that it reads: those of decisions alone.
        outputs: shape [R, N, K].
        targets: labels, shape [N].
        weights: of the examples in each row, shape [R, N].
        caution: deviations that are added to a predicted cost.
    """

    value: CostOfStatistics
    kind: SeveralStatistics
    outputs: Tensor
    targets: Tensor
    weights: Tensor
    caution: float

    @cached_property
    def calibrated(self) -> Calibrated:
        """Probabilities of the classes."""
        return calibrated(self.outputs, self.targets, self.weights)

    @cached_property
    def labels(self) -> Tensor:
        """Labels, shared with probabilities and weighted, shape [R, N, K]."""
        given = one_hot(self.targets, self.outputs.shape[-1]).to(self.outputs)
        shared = torch.lerp(given[None], self.calibrated.probabilities, SHARED)
        return shared * self.weights[..., None]

    @property
    def start(self) -> Tensor:
        """Offsets of least cost: none, or the obvious ones of each row, [R, K]."""
        share = self.labels.sum(1)
        share = share / share.sum(1, keepdim=True)
        found = self.calibrated.adjusted(share)
        tried = torch.cat([torch.zeros_like(found[:1]), found])
        costs = [self.costs(self._decided(offsets)) for offsets in tried]
        best = torch.stack(costs).argmin(0)
        return tried[best, torch.arange(len(best))]

    def _decided(self, offsets: Tensor) -> Tensor:
        """Return the counts by label and decision at offsets [R, K], [R, K, K]."""
        decided = (self.outputs + offsets[:, None]).argmax(-1)
        chosen = one_hot(decided, offsets.shape[1]).to(self.labels)
        return torch.einsum("rnk,rnj->rkj", self.labels, chosen)

    def swept(self, offsets: Tensor) -> Tensor:
        """Return offsets [R, K] after a line search of every class in turn."""
        classes = self.outputs.shape[-1]
        for place in range(classes) if classes > 2 else [1]:
            offsets = offsets.clone()
            offsets[:, place] += self._step(offsets, place)
        return offsets

    def costs(self, matrices: Tensor) -> Tensor:
        """Return the predicted cost of counts by label and decision [B, K, K], [B]."""
        decisions = _decisions(self.kind)
        assert decisions is not None
        groups = self.kind.joined([decisions.of_counts(matrices)])
        mean, deviation = self.value.predict(groups)
        return mean + self.caution * deviation

    def _step(self, offsets: Tensor, place: int) -> Tensor:
        """Return by how much the offset of one class is moved in every row, [R]."""
        margins, others = self._margins(offsets, place)
        edges = self._edges(margins, place)
        tried = edges[:, ::PER_THRESHOLD]
        # What is tried first is no step at all: a tie stays where it is.
        tried = torch.cat([torch.zeros_like(tried[:, :1]), tried], 1)
        matrices = self._matrices(margins, others, edges, tried, place)
        rows, count, classes, _ = matrices.shape
        costs = self.costs(matrices.view(-1, classes, classes)).view(rows, count)
        best = costs.argmin(1, keepdim=True)
        better = costs.gather(1, best) < costs[:, :1] - SMALL
        step = tried.gather(1, best) * better
        return step[:, 0].to(offsets)

    def _margins(self, offsets: Tensor, place: int) -> tuple[Tensor, Tensor]:
        """Return what a class lacks to be decided, and what is decided else, [R, N]."""
        scores = self.outputs + offsets[:, None]
        own = scores[..., place].clone()
        scores[..., place] = -torch.inf
        best, others = scores.max(-1)
        return best - own, others

    def _edges(self, margins: Tensor, place: int) -> Tensor:
        """Return edges of bins, half of them where the class itself is, [R, B]."""
        bins = THRESHOLDS * PER_THRESHOLD // 2
        levels = torch.linspace(0, 1, bins).to(margins)
        own = margins[:, self.targets == place]
        found = [
            torch.quantile(part, levels, dim=1).T
            for part in (margins, own)
            if part.shape[1]
        ]
        return torch.cat(found, 1).sort(1).values

    def _matrices(
        self, margins: Tensor, others: Tensor, edges: Tensor, tried: Tensor, place: int
    ) -> Tensor:
        """Return the counts by label and decision at thresholds [R, T], [R, T, K, K].

        Margins and what is decided else are [R, N]; edges of bins [R, B].
        """
        (rows, bins), classes = edges.shape, self.outputs.shape[-1]
        bin_of = torch.searchsorted(edges, margins)  # [R, N] in [0, B]
        row = torch.arange(rows)[:, None]
        index = ((row * (bins + 1) + bin_of) * classes + others).flatten()
        held = self.labels.new_zeros(rows * (bins + 1) * classes, classes)
        held.index_add_(0, index, self.labels.flatten(0, 1))
        held = held.view(rows, bins + 1, classes, classes)  # by else decided, by label
        between = (edges[:, 1:] + edges[:, :-1]) / 2
        centres = torch.cat([edges[:, :1], between, edges[:, -1:]], 1)
        count = (self.targets == place).sum().clamp_min(1)
        narrower = (WIDE_COUNT / count).clamp_max(1) ** (1 / 3)
        width = WIDTH * narrower / self.calibrated.scale
        taken = (
            (tried[:, :, None] - centres[:, None]) / width[:, None, None]
        ).sigmoid()
        moved = torch.einsum("rtb,rbdk->rtkd", taken.to(held), held)
        matrices = held.sum(1).transpose(1, 2)[:, None] - moved
        matrices[..., place] += moved.sum(-1)
        return matrices


SWEEPS = 4
"""Most sweeps over the classes; two classes have one line, and need one."""


def swept_offsets(
    value: CostOfStatistics,
    statistics: ObservedStatistics,
    outputs: Tensor,
    weights: Tensor,
    *,
    caution: float,
) -> Iterator[Tensor]:
    """Yield offsets [R, C] at the start and after every sweep, for R weighted samples.

    Args:
        value: says what decisions are worth.
        statistics: what it reads; see `is_decided`.
        outputs: outputs in every row, shape [R, N, C].
        weights: of the examples in each row, shape [R, N].
        caution: deviations that are added to a predicted cost.
    """
    kind = statistics.kind
    assert isinstance(kind, SeveralStatistics)
    count, columns = outputs.shape[1:]
    every = -(-count // EXAMPLES)
    lines = OffsetLines(
        value,
        kind,
        class_logits(outputs[:, ::every].cpu().float()),
        statistics.targets[::every],
        weights[:, ::every],
        caution,
    )
    offsets = lines.start
    yield offsets_of(offsets, columns)
    for _ in range(SWEEPS if columns > 2 else 1):
        offsets = lines.swept(offsets)
        yield offsets_of(offsets, columns)

"""What a descent of phi may move, in coordinates whose steps all do about as much.

An input bias, a scale and an output offset move the statistics by different amounts.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.process.light_optimizers import LightAdam
from metricopt.reading.outputs import VALUES
from metricopt.tasks.observed_statistics import ObservedStatistics

LEADING = 0.05
"""Directions count that move the statistics by this share of the first, or more."""
EXAMPLES = 1_000
MOST = 64
"""Most statistics whose slopes are computed, one by one."""
SHIFTS = 21
"""Shifts of predicted values from which a descent may start; none at all is one."""
MOST_MOVED = {"values": {"scales": 3.0}, "amounts": {"scales": 1.0, "offsets": 3.0}}
"""Most that a unit moves an offset or the logarithm of a scale of predicted values.
Values that hardly differ need a scale of 10, but the statistics say nothing of that at
1. Amounts run away: scales are powers, and offsets are added to logarithms."""
TEMPERATURES = (0.25, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0, 5.0)
"""Temperatures from which a descent may start."""
APART = 8
"""Most outputs that are shifted one at a time."""
SMALL = 1e-12


@dataclass(frozen=True)
class Coordinates:
    """Scales of phi, and directions in which the statistics move most, at phi = 0.

    Attributes:
        scale: what a unit of a coordinate is in phi, shape [d]: it moves the
            statistics by about 1. 0 for parts of phi that move none.
        vectors: directions of phi, that which moves the statistics most first, shape
            [r, d].
        moves: what a unit of each does to the statistics, shape [q, r].
    """

    scale: Tensor
    vectors: Tensor
    moves: Tensor

    @property
    def are_none(self) -> bool:
        """Whether nothing moves the statistics."""
        return len(self.vectors) == 0

    def combination(self, length: float, generator: torch.Generator) -> Tensor:
        """Return a random phi [d] that moves the statistic that moves most by `length`.

        The directions are alike in what they do to the statistics.
        """
        noise = torch.randn(len(self.vectors), generator=generator)
        noise = noise / self.moves.norm(dim=0).clamp_min(SMALL)
        furthest = (self.moves @ noise).abs().max().clamp_min(SMALL)
        phi: Tensor = noise @ self.vectors * (length / furthest)
        return phi


def coordinates(
    statistics: ObservedStatistics, generator: torch.Generator
) -> Coordinates:
    """Return the coordinates of phi at phi = 0."""
    rows = statistics.draw(EXAMPLES, generator)
    phi = torch.zeros(1, statistics.size, requires_grad=True)
    near = statistics.smooth(phi, rows)[statistics.kind.near][0]
    if len(near) > MOST:
        # Random combinations of many statistics span what they span.
        mixed = torch.randn(MOST, len(near), generator=generator, dtype=near.dtype)
        near = mixed @ near / math.sqrt(MOST)
    slopes = torch.cat(
        [torch.autograd.grad(each, phi, retain_graph=True)[0] for each in near]
    )
    scale = torch.zeros(statistics.size)
    for place in statistics.parts.values():
        # As far as the statistic goes that the part moves most.
        steepest = slopes[:, place].norm(dim=1).max()
        scale[place] = 1 / steepest if steepest > SMALL else 0.0
    for part, most in MOST_MOVED.get(statistics.kind.reads, {}).items():
        if part in statistics.parts:
            scale[statistics.parts[part]].clamp_(max=most)
    left, values, right = torch.linalg.svd(slopes * scale, full_matrices=False)
    kept = values > LEADING * values[0]
    return Coordinates(scale, right[kept] * scale, (left * values)[:, kept])


@dataclass(frozen=True)
class Pace:
    """How a descent goes.

    Attributes:
        rate: learning rate of Adam, in coordinates.
        steps: how many there are.
        anneal: whether the rate falls to 0 like a cosine.
        steepest: norm at which the slopes of a row are clipped.
    """

    rate: float
    steps: int
    anneal: bool = False
    steepest: float = math.inf


def descend(
    objective: Callable[[Tensor], Tensor],
    start: Tensor,
    scale: Tensor,
    pace: Pace,
) -> Iterator[Tensor]:
    """Yield phi [B, d] after every step of Adam on an objective, [B, d] to [B].

    Rows are independent. Coordinates are those of the scale [d]; phi stays as it is
    where the scale is 0, and where the objective has no slope at all.
    """
    moved = torch.zeros_like(start, requires_grad=True)
    optimizer = LightAdam([moved], lr=pace.rate, eps=SMALL)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, pace.steps)
    for _ in range(pace.steps):
        optimizer.zero_grad()
        cost = objective(start + moved * scale).sum()
        if cost.requires_grad:
            cost.backward()
            _clip(moved.grad, pace.steepest)
        optimizer.step()
        if pace.anneal:
            rates.step()
        yield (start + moved.detach() * scale).detach()


def _clip(slopes: Tensor | None, steepest: float) -> None:
    """Clip the norm of the slopes of every row, [B, d]; what overflowed has none."""
    assert slopes is not None
    slopes.nan_to_num_(0.0, 0.0, 0.0)
    norms = slopes.norm(dim=1, keepdim=True).clamp_min(SMALL)
    slopes.mul_((steepest / norms).clamp_max(1))


@dataclass(frozen=True)
class Reach:
    """What a descent may move, and where it starts.

    Attributes:
        name: for a reader.
        statistics: as functions of what is moved, [m] numbers.
        scale: scale of the coordinates, shape [m].
        starts: where a descent may start, shape [s, m]; the most promising is taken.
        place: place of these numbers in phi.
        phi: the rest of phi, shape [d].
        is_cheap: whether the network need not run.
        by_hand: what the last `starts` are that anybody would try by hand, and how
            many.
    """

    name: str
    statistics: ObservedStatistics
    scale: Tensor
    starts: Tensor
    place: slice
    phi: Tensor
    is_cheap: bool = False
    by_hand: tuple[str, int] = ("", 0)

    def whole(self, moved: Tensor) -> Tensor:
        """Return phi [d] with what was moved [m] in its place."""
        phi = self.phi.clone()
        phi[self.place] = moved
        return phi


def reaches(
    statistics: ObservedStatistics, scale: Tensor, candidates: Tensor
) -> list[Reach]:
    """Return all that a descent may move, the simplest first.

    Output offsets, with scales of outputs where there are some, the rest of the
    adapter, all parts together, and all parts from one of the candidates [S, d], if
    there are any. Offsets start from candidates that move nothing else, too. Statistics
    are functions of phi [d], whose coordinates have the scale [d].
    """
    untouched, everything = torch.zeros(1, len(scale)), slice(0, len(scale))
    zero, found = untouched[0], []
    parts = statistics.parts
    place, name = parts.get("offsets"), "output offsets"
    if place is not None and "scales" in parts:
        place, name = slice(place.start, parts["scales"].stop), f"{name} and scales"
    if place is not None:
        rest, others = scale.clone(), candidates.clone()
        rest[place] = others[:, place] = 0
        alone, own = statistics, scale[place]
        if "adapter" in parts:
            alone = statistics.of_offsets()
        starts = torch.cat([untouched, candidates[~others.any(1)]])[:, place]
        by_hand = ("", 0)
        if "scales" in parts:
            values = statistics.kind.reads in VALUES
            more = _shifts(own) if values else _temperatures(own)
            starts = torch.cat([starts, more])
            by_hand = ("one shift" if values else "temperature", len(more))
        found = [Reach(name, alone, own, starts, place, zero, True, by_hand)]
        if "adapter" not in parts:
            return found
        name = "all but offsets"
        found.append(Reach(name, statistics, rest, untouched, everything, zero))
    found.append(Reach("all of phi", statistics, scale, untouched, everything, zero))
    if len(candidates):
        name = "all of phi from a candidate"
        found.append(Reach(name, statistics, scale, candidates, everything, zero))
    return found


def _shifts(scale: Tensor) -> Tensor:
    """Return shifts of all values together, and of each output.

    Whoever tunes predicted values by hand tries these. Half of the scale [2 C] is that
    of the shifts, the other half that of the scales, which stay as they are.
    """
    outputs = len(scale) // 2
    lengths = torch.linspace(-1, 1, SHIFTS)
    kinds = [scale[:outputs]]
    if 1 < outputs <= APART:
        kinds += list(torch.diag(scale[:outputs]))
    moved = torch.cat([lengths[:, None] * kind for kind in kinds])
    return torch.cat([moved, torch.zeros_like(moved)], 1)


def _temperatures(scale: Tensor) -> Tensor:
    """Return temperatures of all outputs alike, as phi [T, 2 C] of a scale [2 C]."""
    return at_temperatures(TEMPERATURES, len(scale), slice(len(scale) // 2, None))


def at_temperatures(temperatures: Sequence[float], size: int, scales: slice) -> Tensor:
    """Return phi [T, d] of outputs at temperatures, whose scales have this place."""
    phi = torch.zeros(len(temperatures), size)
    phi[:, scales] = -torch.tensor(temperatures).log()[:, None]
    return phi

"""What a descent may move: output offsets, the rest of the adapter, or all of phi."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.tasks.observed_statistics import ObservedStatistics


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
    """

    name: str
    statistics: ObservedStatistics
    scale: Tensor
    starts: Tensor
    place: slice
    phi: Tensor
    is_cheap: bool = False

    def whole(self, moved: Tensor) -> Tensor:
        """Return phi [d] with what was moved [m] in its place."""
        phi = self.phi.clone()
        phi[self.place] = moved
        return phi


def reaches(
    statistics: ObservedStatistics, scale: Tensor, candidates: Tensor
) -> list[Reach]:
    """Return all that a descent may move, the simplest first.

    Output offsets, the rest of the adapter, all parts together, and all parts from a
    candidate of the portfolio.

    Args:
        statistics: statistics of the observe split, as functions of phi [d].
        scale: scale of the coordinates of phi, shape [d].
        candidates: candidates of the portfolio, shape [S, d]; S may be 0.
    """
    untouched, everything = torch.zeros(1, len(scale)), slice(0, len(scale))
    zero, found = untouched[0], []
    place = statistics.parts.get("offsets")
    if place is not None and len(statistics.parts) > 1:
        alone, own, rest = statistics.of_offsets(), scale[place], scale.clone()
        start, rest[place] = untouched[:, place], 0
        found = [
            Reach("output offsets", alone, own, start, place, zero, True),
            Reach("all but offsets", statistics, rest, untouched, everything, zero),
        ]
    found.append(Reach("all of phi", statistics, scale, untouched, everything, zero))
    if len(candidates):
        name = "all of phi from a fine-tuning of the portfolio"
        found.append(Reach(name, statistics, scale, candidates, everything, zero))
    return found

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
        scale: of the coordinates, shape [m].
        start: where the descent starts, shape [m].
        place: of these numbers in phi.
        phi: the rest of phi, shape [d].
        is_cheap: whether the network need not run.
    """

    name: str
    statistics: ObservedStatistics
    scale: Tensor
    start: Tensor
    place: slice
    phi: Tensor
    is_cheap: bool = False

    def whole(self, moved: Tensor) -> Tensor:
        """Return phi [d] with what was moved [m] in its place."""
        phi = self.phi.clone()
        phi[self.place] = moved
        return phi


def reaches(
    statistics: ObservedStatistics, scale: Tensor, candidate: Tensor | None
) -> list[Reach]:
    """Return all that a descent may move.

    Every part of the adapter alone, all parts together, and all parts from a candidate
    of the portfolio.

    Args:
        statistics: of the observe split, as functions of phi [d].
        scale: of the coordinates of phi, shape [d].
        candidate: the most promising one, shape [d]; None if there is none.
    """
    zero, everything = torch.zeros_like(scale), slice(0, len(scale))
    found = [Reach("all of phi", statistics, scale, zero, everything, zero)]
    if len(statistics.parts) > 1:
        for name, place in statistics.parts.items():
            if name == "offsets":
                alone, own, start = statistics.of_offsets(), scale[place], zero[place]
                found.append(
                    Reach("output offsets", alone, own, start, place, zero, True)
                )
            else:
                own = torch.zeros_like(scale)
                own[place] = scale[place]
                found.append(
                    Reach("all but offsets", statistics, own, zero, everything, zero)
                )
    if candidate is not None:
        name = "all of phi from a fine-tuning of the portfolio"
        found.append(Reach(name, statistics, scale, candidate, everything, zero))
    return found

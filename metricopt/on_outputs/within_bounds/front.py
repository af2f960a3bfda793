"""A Pareto front of an objective and bounded metrics, on predicted values."""

import torch
from torch import Tensor

from metricopt.on_outputs.within_bounds.sweeps import Aim

MOST = 100
"""Most points of a front."""
SMALL = 1e-9
DECIMALS = 7


def is_best(values: Tensor) -> Tensor:
    """Return whether each row [P, M] is Pareto-optimal, shape [P]; less is better.

    Of rows that are equal but for rounding, one is.
    """
    values = values.round(decimals=DECIMALS)
    found = torch.zeros(len(values), dtype=torch.bool)
    order = sorted(range(len(values)), key=lambda place: values[place].tolist())
    kept = values[:0]
    # In this order, only a row before another can be as good in everything.
    for place in order:
        if not (kept <= values[place]).all(1).any():
            found[place] = True
            kept = torch.cat([kept, values[place : place + 1]])
    return found


def spread_out(values: Tensor, most: int = MOST) -> Tensor:
    """Return places of rows [P, M] that are far apart, best first column first.

    Source: the farthest-first traversal of Gonzalez, Theoretical Computer Science 38,
    1985.
    """
    low, high = values.aminmax(dim=0)
    scaled = (values - low) / (high - low).clamp_min(SMALL)
    chosen = [int(values[:, 0].argmin())]
    distance = torch.full((len(values),), torch.inf, dtype=values.dtype)
    while len(chosen) < min(most, len(values)):
        distance = distance.minimum((scaled - scaled[chosen[-1]]).norm(dim=1))
        chosen.append(int(distance.argmax()))
    places = torch.tensor(chosen)
    return places[values[places, 0].argsort(stable=True)]


def towards(point: Tensor, scale: Tensor) -> Aim:
    """Return the aim of being no worse than a point [M] in any metric.

    Metrics have the scale [M].

    Source: the achievement function of Wierzbicki, 1980.
    """

    def aim(values: Tensor) -> Tensor:
        behind = (values - point) / scale
        return behind.amax(1) + 0.01 * behind.sum(1)

    return aim

"""Distance mixture of ALA: eq. 9, a weighted sum of functions of two distances.

Source: Huang et al., ICML 2019, Sec. 4, eq. 9. The paper names the default functions
alone, d^2 and 1 / (2 d); the others are in a supplement that is not public. Ours come
in two sets, since the paper finds that the choice matters little. Both begin with the
defaults. All are of about the same size on the distances of unit vectors.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

FunctionSet = Literal["shapes", "powers"]
Function = Callable[[Tensor], Tensor]

NEAREST = 0.1
"""Distance below which negatives are no nearer: 1 / d has no bound."""
FARTHEST = 2.0
"""Greatest distance of two unit vectors."""

INCREASING: Mapping[FunctionSet, Mapping[str, Function]] = {
    # Convex, linear and concave shapes.
    "shapes": {
        "squared": torch.square,
        "linear": lambda d: d,
        "cubic": lambda d: d**3 / 2,
        "logarithmic": torch.log1p,
        "exponential": lambda d: d.expm1() / 3.2,
    },
    # Powers, the last one much steeper for distant pairs.
    "powers": {
        "squared": torch.square,
        "power 1": lambda d: d,
        "power 3/2": lambda d: d**1.5,
        "power 3": lambda d: d**3 / 2,
        "power 4": lambda d: d**4 / 4,
    },
}
"""F+ by set and name, first the default."""
DECREASING: Mapping[FunctionSet, Mapping[str, Function]] = {
    "shapes": {
        "inverse": lambda d: 0.5 / d,
        "logarithmic": lambda d: -(d / FARTHEST).log(),
        "exponential": lambda d: (1 - d).exp() / 2,
        "linear": lambda d: FARTHEST - d,
        "squared": lambda d: (FARTHEST - d).square() / 2,
    },
    "powers": {
        "inverse": lambda d: 0.5 / d,
        "power 1": lambda d: FARTHEST - d,
        "power 2": lambda d: (FARTHEST - d).square() / 2,
        "power 3": lambda d: (FARTHEST - d) ** 3 / 4,
        "minus squared": lambda d: (FARTHEST**2 - d.square()) / 2,
    },
}
"""F- by set and name, first the default."""
EACH = 5
"""Functions of either distance."""
CHANCE = math.sqrt(2)
"""Distance of two random directions, in many dimensions."""


def start() -> Tensor:
    """Return Phi that selects d^2 for positives and 1 / (2 d) for negatives, [10]."""
    phi = torch.zeros(2 * EACH)
    phi[[0, EACH]] = 1.0
    return phi


def terms(positive: Tensor, negative: Tensor, functions: FunctionSet) -> Tensor:
    """Return all F+ of some distances and all F- of others, shape [..., 10].

    Args:
        positive: distances to examples of the own class, shape [...], in [0, 2].
        negative: distances to examples of other classes, shape [...], in [0, 2].
        functions: name of the set.
    """
    bounded = negative.clamp(min=NEAREST)
    found = [function(positive) for function in INCREASING[functions].values()]
    found += [function(bounded) for function in DECREASING[functions].values()]
    return torch.stack(found, -1)


def distance_mixture(
    positive: Tensor, negative: Tensor, phi: Tensor, functions: FunctionSet = "shapes"
) -> Tensor:
    """Return sum_i Phi(i) F+_i(d+) + Phi(i + 5) F-_i(d-) of every triplet, shape [T].

    Args:
        positive: d+, distances of anchors to positives, shape [T], in [0, 2].
        negative: d-, distances of anchors to negatives, shape [T], in [0, 2]. Nearer
            than 0.1 they cost as much as there.
        phi: weights in [0, 1], shape [10].
        functions: name of the set.

    Source: Huang et al., ICML 2019, eq. 9. Differs: the functions but for the defaults.
    """
    return terms(positive, negative, functions) @ phi

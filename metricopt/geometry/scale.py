"""The positive factor that blockIAF makes of a conditioner's output a.

The poster asks for a positive, bounded function, for example a sigmoid. The released
code takes exp for every block. A plain sigmoid starts at 1/2, which halves parameters
and steps; the three functions here are 1 at a = 0.
"""

import math
from typing import Literal

from torch import Tensor
from torch.nn.functional import logsigmoid

Scale = Literal["exp", "2-sigmoid", "clamped-exp"]
"""exp(a), unbounded; 2 sigmoid(a), in (0, 2); exp(a) for a clamped to [-3, 3]."""
CLAMP = 3.0
"""Largest absolute a of the clamped scale; beyond it, a gets no gradient."""


def scale(kind: Scale, a: Tensor) -> Tensor:
    """Return positive factors, of the shape of a; exactly 1 where a is 0."""
    if kind == "2-sigmoid":
        return 2 * a.sigmoid()
    return log_scale(kind, a).exp()


def log_scale(kind: Scale, a: Tensor) -> Tensor:
    """Return the logarithms of the factors, of the shape of a."""
    if kind == "2-sigmoid":
        return math.log(2) + logsigmoid(a)
    return a if kind == "exp" else a.clamp(-CLAMP, CLAMP)

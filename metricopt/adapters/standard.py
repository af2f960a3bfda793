"""Where predicted values are measured from, and in which unit."""

from typing import NamedTuple

import torch
from torch import Tensor


class Standard(NamedTuple):
    """What predicted values are measured from, and in: a scale leaves the centre alone.

    Attributes:
        centre: median of every output, shape [C].
        unit: half of the distance between the quartiles of its targets, or 1 if they
            are alike, [C]. Predictions may hardly differ.
    """

    centre: Tensor
    unit: Tensor

    @classmethod
    def of(cls, outputs: Tensor, targets: Tensor) -> "Standard":
        """Return the standard of predicted values and their targets, [N, C] each."""
        ordered, count = targets.to(outputs.device).sort(0).values, len(targets)
        # As numbers: targets may be whole, or beyond what half precision holds.
        unit = (ordered[3 * count // 4] - ordered[count // 4]).double() / 2
        unit = unit.where(unit > 0, torch.ones_like(unit))
        return cls(outputs.median(0).values, unit)

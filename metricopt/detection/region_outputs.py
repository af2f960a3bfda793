"""What a detector says of its regions: class logits and boxes, in one tensor."""

from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.errors import ShapeError

BESIDE = 6
"""Numbers of a region that do not depend on the number of classes."""
EACH = 5
"""Numbers of a region for every class: its logit, and the sides of its box."""


class RegionOutputs(NamedTuple):
    """Outputs of P regions per image, for C classes and the background.

    Attributes:
        logits: shape [..., P, C + 1], that of the background first.
        boxes: boxes of every class, x1, y1, x2, y2 in pixels, shape [..., P, C, 4].
        proposals: where the region was looked for, in pixels, shape [..., P, 4].
        present: whether there is such a region, bool, shape [..., P].
    """

    logits: Tensor
    boxes: Tensor
    proposals: Tensor
    present: Tensor

    @property
    def classes(self) -> int:
        """Number of classes C, without the background."""
        return self.boxes.shape[-2]

    def packed(self) -> Tensor:
        """Return all of it as one tensor, shape [..., P, 5 C + 6]."""
        present = self.present[..., None].to(self.logits)
        boxes = self.boxes.flatten(-2)
        return torch.cat([self.logits, boxes, self.proposals, present], -1)


def region_outputs(outputs: Tensor) -> RegionOutputs:
    """Return the parts of packed outputs [..., P, 5 C + 6]; ShapeError for others."""
    classes, rest = divmod(outputs.shape[-1] - BESIDE, EACH)
    if outputs.ndim < 2 or rest or classes < 1:
        raise ShapeError(
            f"a detector of C classes gives outputs [..., P, {EACH} C + {BESIDE}], got "
            f"{list(outputs.shape)}"
        )
    sizes = (classes + 1, 4 * classes, 4, 1)
    logits, boxes, proposals, present = outputs.split(sizes, -1)
    return RegionOutputs(
        logits, boxes.unflatten(-1, (classes, 4)), proposals, present[..., 0] > 0
    )

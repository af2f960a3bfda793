"""Boxes in another form than x1, y1, x2, y2 in pixels: told before they mislead.

A wrong form is no error to any metric: every detection is then wrong, and training
towards such boxes makes a detector worse.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from metricopt.detection.detections import intersection_over_union
from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import are_truths, counted, present
from metricopt.errors import DataError
from metricopt.reading.outputs import Outputs, Targets

OUTSIDE = 0.1
"""How far a box may reach beyond its image, relative to the side of the image."""
NEAR = 0.5
"""Overlap with a region from which an object was looked for there."""
FEW, CLEAR = 0.5, 3.0
"""Share of the objects below which other forms are tried, and how many times more of
them another form has to find."""


def check_inside(truths: Tensor, sizes: Sequence[tuple[int, ...]]) -> None:
    """Raise DataError if one of the objects [N, G, 6] reaches far beyond its image.

    Sizes are heights and widths of the N images.
    """
    edges = truths.new_tensor(sizes).flip(-1).repeat(1, 2)[:, None]
    margin = OUTSIDE * edges
    outside = (truths[..., :4] < -margin) | (truths[..., :4] > edges + margin)
    wrong = outside.any(-1) & present(truths)
    if bool(wrong.any()):
        place, at = wrong.nonzero()[0].tolist()
        height, width = sizes[place]
        raise DataError(
            f"boxes of image {place}, {width} pixels wide and {height} high, must be "
            f"x1, y1, x2, y2 inside of it, got {truths[place, at, :4].tolist()}: clip "
            "them, or check that x stands before y"
        )


def check_found(outputs: Outputs, truths: Targets) -> None:
    """Raise DataError if a detector finds the objects of another form of boxes.

    Outputs of the untouched network are packed, [N, P, 5 C + 6], objects [N, G, 6];
    others are not looked at. A detector that finds few in either form is not judged.
    """
    if not isinstance(outputs, Tensor) or not isinstance(truths, Tensor):
        return
    if not are_truths(truths):
        return
    proposals, known = region_outputs(outputs), counted(truths)
    if not bool(known.any()):
        return
    found = proposals.proposals.float().masked_fill(~proposals.present[..., None], 0.0)

    def share(boxes: Tensor) -> float:
        near = intersection_over_union(found, boxes.to(found)).amax(1) >= NEAR
        return float(near.to(known.device)[known].float().mean())

    boxes = truths[..., :4]
    own = share(boxes)
    first, second = boxes.chunk(2, -1)
    others = {
        "y1, x1, y2, x2": boxes[..., [1, 0, 3, 2]],
        "x, y, width, height": torch.cat([first, first + second], -1),
        "the middle, width and height": torch.cat(
            [first - second / 2, first + second / 2], -1
        ),
    }
    for form, other in others.items():
        if own < FEW and share(other) > max(CLEAR * own, FEW):
            raise DataError(
                "boxes must be x1, y1, x2, y2 in pixels, but the regions that the "
                f"detector looks at hold {share(other):.0%} of the objects if boxes "
                f"are {form}, and {own:.0%} if not: convert them"
            )

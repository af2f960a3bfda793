"""The 14 joints of Leeds Sports Pose, and lengths that are measured by them."""

import torch
from torch import Tensor

from benchmarks.data.poses.contract import Skeleton
from metricopt.errors import DataError

MASK = 0.53
"""Area of a person over the area of its box, where no mask says it, as in mmpose."""
LEEDS = Skeleton(
    (
        *("r_ankle", "r_knee", "r_hip", "l_hip", "l_knee", "l_ankle"),
        *("r_wrist", "r_elbow", "r_shoulder", "l_shoulder", "l_elbow", "l_wrist"),
        *("neck", "head_top"),
    ),
    ((0, 5), (1, 4), (2, 3), (6, 11), (7, 10), (8, 9)),
    (
        *((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (6, 7), (7, 8), (8, 12)),
        *((12, 9), (9, 10), (10, 11), (12, 13), (8, 2), (9, 3)),
    ),
)
DIAGONALS = ((9, 2), (8, 3))
"""Left shoulder and right hip, right shoulder and left hip."""


def torsos(joints: Tensor) -> Tensor:
    """Return the longer diagonal of every torso [N], of joints [N, J, 3].

    PCK of Leeds Sports Pose compares with one of them; which is short in a side view,
    or not labelled.

    Raises:
        DataError: if neither is labelled, or its length is 0.
    """
    found = []
    for shoulder, hip in DIAGONALS:
        ends = joints[:, shoulder], joints[:, hip]
        known = (ends[0][:, 2] == 1) & (ends[1][:, 2] == 1)
        length = (ends[0][:, :2] - ends[1][:, :2]).norm(dim=1)
        found.append(length.where(known, 0.0))
    longer = torch.stack(found).amax(0)
    if not bool((longer > 0).all()):
        raise DataError(
            f"{int((longer == 0).sum())} people have no shoulder and opposite hip that "
            "are labelled, expected one pair of each"
        )
    return longer

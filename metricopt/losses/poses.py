"""The loss of heat maps: the squared difference from those of the joints."""

import torch
from torch import Tensor

from metricopt.structured.poses import check_maps, target_maps


def squared_errors(maps: Tensor, poses: Tensor) -> Tensor:
    """Return the squared errors of heat maps, 0 for joints that do not count.

    Args:
        maps: shape [..., n, J, H, W].
        poses: packed, shape [..., n, J + 1, 3].

    Returns:
        Shape [..., n, J, H * W].

    Raises:
        ShapeError: if the maps are of another number of joints.
    """
    check_maps(maps, poses)
    wanted, counts = target_maps(poses, *maps.shape[-2:])
    errors = (maps - wanted) * counts[..., None, None]
    return errors.square().flatten(-2)


class HeatMapLoss(torch.nn.Module):
    """The mean squared error of heat maps, over joints that are labelled or not.

    Source: Xiao et al., ECCV 2018. Differs: no factor of one half.
    """

    def forward(self, maps: Tensor, poses: Tensor) -> Tensor:
        """Return the loss of maps [n, J, H, W] and packed poses, a scalar."""
        return self.row_losses(maps[None], poses[None])[0]

    def row_losses(self, maps: Tensor, poses: Tensor) -> Tensor:
        """Return the losses [...] of maps [..., n, J, H, W] and packed poses."""
        return squared_errors(maps, poses).mean((-3, -2, -1))

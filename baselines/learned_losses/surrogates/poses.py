"""The surrogate of heat maps of joints, which weighs the squared error of every joint.

Source: Huang et al., ICLR 2022, and its published code: the squared errors of the H W
cells of a joint go through a layer of 8 units with ELU, and one with a sigmoid, which
gives the weight of the joint. Differs: errors are divided by their mean over recorded
maps, as soft ranks need losses of order 1.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, linear

from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    Surrogate,
    SurrogateKind,
)
from metricopt.errors import DataError, ShapeError
from metricopt.losses.poses import HeatMapLoss, squared_errors
from metricopt.structured.poses import are_poses, check_maps, labelled

SMALL = 1e-12


class PoseSurrogate(Surrogate):
    """A loss: the mean of w(e) e over joints and cells, e the squared errors.

    It is 0 for right maps, and never less. But a weight may fall so fast with an error
    that a larger error has a smaller loss. `anchored`, which is ours, takes the weights
    of both layers without their signs, so that the loss rises with every error.

    Args:
        cells: cells H W of a heat map.
        unit: squared error that counts as 1.
        width: units of the hidden layer.
        anchored: whether the loss rises with every squared error.
    """

    unit: Tensor

    def __init__(
        self, cells: int, unit: float = 1.0, width: int = 8, *, anchored: bool = False
    ) -> None:
        super().__init__(anchored=anchored)
        self.hidden, self.last = nn.Linear(cells, width), nn.Linear(width, 1)
        self.register_buffer("unit", torch.tensor(unit))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group, shape [...], not negative.

        Args:
            outputs: heat maps, shape [..., n, J, H, W].
            targets: packed poses, shape [..., n, J + 1, 3].

        Raises:
            ShapeError: if the maps are of another number of joints or cells.
        """
        cells = outputs.shape[-2:].numel()
        if cells != self.hidden.in_features:
            raise ShapeError(
                f"this surrogate is of maps of {self.hidden.in_features} cells, got "
                f"{list(outputs.shape[-2:])}"
            )
        errors = squared_errors(outputs, targets) / self.unit
        weighted = self.weights(errors) * errors
        losses: Tensor = self.scale * weighted.mean((-3, -2, -1))
        return losses

    def weights(self, errors: Tensor) -> Tensor:
        """Return the weight of every joint, in (0, 1), of errors [..., H W]."""
        first, second = self.hidden.weight, self.last.weight
        if self.anchored:
            first, second = first.abs(), second.abs()
        hidden = elu(linear(errors, first, self.hidden.bias))
        return linear(hidden, second, self.last.bias).sigmoid()


@KINDS.register("poses")
class Poses(SurrogateKind):
    """Heat maps of joints, with the poses they were recorded with."""

    loss = HeatMapLoss()
    shape = "[J, H, W]"

    def check(self, outputs: Any, targets: Any) -> None:
        """Check that outputs are heat maps of the joints of packed poses."""
        if not isinstance(outputs, Tensor) or outputs.ndim != 4:
            got = list(outputs.shape) if isinstance(outputs, Tensor) else "a tuple"
            raise ShapeError(
                f"a surrogate of poses needs heat maps [N, J, H, W], got {got}"
            )
        if not are_poses(targets):
            raise DataError("a surrogate of poses needs packed poses [N, J + 1, 3]")
        check_maps(outputs, targets)
        if not bool(labelled(targets).any()):
            raise DataError("a surrogate of poses needs a labelled joint, got none")

    def make(self, recorded: Groups, *, anchored: bool) -> PoseSurrogate:
        """Return a surrogate with random weights for maps of this size."""
        unit = float(self.base_losses(recorded).mean().clamp_min(SMALL))
        cells = recorded.outputs.shape[-2:].numel()
        return PoseSurrogate(cells, unit, anchored=anchored)

    def base_losses(self, groups: Groups) -> Tensor:
        """Return the mean squared error of every group."""
        return self.loss.row_losses(groups.outputs, groups.targets)

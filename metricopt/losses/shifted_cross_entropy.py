"""Cross-entropy with class weights, and of logits that are shifted first."""

import torch
from torch import Tensor
from torch.nn import functional

from metricopt.errors import ShapeError
from metricopt.losses.contract import RowLoss
from metricopt.reading.outputs import class_logits


class ShiftedCrossEntropy(RowLoss):
    """Class-weighted cross-entropy of outputs + shift.

    With a shift of tau log prior it is the prior-adjusted loss: outputs are trained to
    be right without the prior that the shift adds.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        shift: added to the logits of the K = max(C, 2) classes, shape [K].
        weights: weights of the classes, > 0, shape [K]; None weighs all alike.

    Raises:
        ShapeError: if shift or weights are not [K].

    Source: Menon et al., ICLR 2021, eq. (9), for the shift.
    """

    def __init__(
        self, classes: int, *, shift: Tensor, weights: Tensor | None = None
    ) -> None:
        super().__init__(classes)
        self.weights = torch.ones_like(shift) if weights is None else weights
        self.shift = shift
        expected = [max(classes, 2)]
        for name, given in (("shift", shift), ("weights", self.weights)):
            if list(given.shape) != expected:
                raise ShapeError(
                    f"{name} must have shape {expected}, got {list(given.shape)}"
                )

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        logits = class_logits(outputs) + self.shift.to(outputs)
        losses = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), reduction="none"
        ).view_as(targets)
        weights = self.weights.to(outputs)[targets]
        return (weights * losses).sum(1) / weights.sum(1)

"""Pairwise AUC-ROC loss: a surrogate of the share of wrongly ordered pairs."""

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

from metricopt.errors import ConfigError
from metricopt.losses.contract import LossProperties, RowLoss

SURROGATES = {
    "hinge": lambda difference: relu(1 - difference),
    "squared-hinge": lambda difference: relu(1 - difference).square(),
    "logistic": lambda difference: softplus(-difference),
}


class PairwiseAUCROC(RowLoss):
    """Mean surrogate of s_i - s_j over pairs of a positive i and a negative j.

    Every class is ranked against the rest by its logit. The loss is the mean over the
    classes that have positives and negatives in the mini-batch; if there is no such
    class, it is 0, with gradient 0.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        surrogate: "hinge" (margin 1), "squared-hinge" or "logistic".

    Raises:
        ConfigError: if the surrogate is none of these.

    Source: Rakotomamonjy, 2004. Differs: trained by mini-batches, one versus rest for
    many classes; the norm of the weights is left to weight decay.
    """

    properties = LossProperties(independent=True, needs_every_class=True)

    def __init__(self, classes: int, *, surrogate: str = "hinge") -> None:
        super().__init__(classes)
        if surrogate not in SURROGATES:
            raise ConfigError(
                f"surrogate must be one of {', '.join(SURROGATES)}, got {surrogate!r}"
            )
        self.surrogate = surrogate

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        # An example is a positive of its own class only: n^2 pairs instead of C n^2.
        binary = self.classes == 1
        column = torch.zeros_like(targets) if binary else targets
        scores = outputs.transpose(1, 2).gather(
            1, column[..., None].expand(-1, -1, targets.shape[1])
        )
        own = scores.diagonal(dim1=1, dim2=2)
        pairs = targets[:, :, None] != targets[:, None, :]
        terms = SURROGATES[self.surrogate](own[..., None] - scores) * pairs
        negatives = pairs.sum(2)
        positives = targets.shape[1] - negatives
        anchors = negatives > 0
        if binary:
            anchors &= targets == 1
        # The positives of a class share a weight of 1: all weights add up to the number
        # of classes.
        weights = anchors.to(outputs.dtype) / positives
        means = terms.sum(2) / negatives.clamp(min=1)
        # Apart from rounding, the sum is 0 or at least 1.
        return (weights * means).sum(1) / weights.sum(1).clamp(min=0.5)

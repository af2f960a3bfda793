"""Statistics of ratios of counts: how right decisions for each class are.

Precision is no linear function of rates, and bounds on it are common. The ratios stand
beside the other statistics where several metrics are observed together.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.metrics.confusion import predict_labels
from metricopt.statistics.contract import Groups, Statistics

SMALL = 1e-12


@dataclass(frozen=True)
class PrecisionStatistics(Statistics):
    """Precision and F-measure of K = max(C, 2) classes; 0 where undefined.

    Attributes:
        temperature: temperature of the softmax that stands for the arg max.
    """

    temperature: float = 0.5
    name: ClassVar[str] = "precisions"
    near: ClassVar[str] = "precisions"

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the decisions, or of random ones as likely as they."""
        classes = max(outputs.shape[-1], 2)
        decisions = self._random(outputs) if smooth else predicted(outputs, classes)
        labels = one_hot(targets.long(), classes).to(decisions)
        if weights is None:
            chosen = labels[None]
        else:
            chosen = labels * weights.to(decisions)[..., None]
        each = chosen.sum(-1, keepdim=True)  # weights, but 1 without any
        hits = (chosen * decisions).sum(1).double()
        decided = (each * decisions).sum(1).double()
        labelled = chosen.sum(1).double()
        return {
            "precisions": hits / decided.clamp_min(SMALL),
            "f-measures": 2 * hits / (decided + labelled).clamp_min(SMALL),
        }

    def _random(self, outputs: Tensor) -> Tensor:
        """Return the probabilities of decisions, [B, N, K]."""
        logits = outputs / self.temperature
        if outputs.shape[-1] == 1:
            positive = logits[..., 0].sigmoid()
            return torch.stack([1 - positive, positive], -1)
        return logits.softmax(-1)


def predicted(outputs: Tensor, classes: int) -> Tensor:
    """Return 1 for the decision and 0 for other classes, [B, N, K]."""
    return one_hot(predict_labels(outputs), classes).float()

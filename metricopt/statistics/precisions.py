"""Statistics of ratios of counts: how right decisions for each class are.

Precision is no linear function of rates, and bounds on it are common. The ratios stand
beside the other statistics where several metrics are observed together.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.statistics.confusion import decisions_of
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
        decisions = decisions_of(outputs, self.temperature if smooth else None)
        labels = one_hot(targets.long(), decisions.shape[-1]).to(decisions)
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

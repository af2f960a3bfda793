"""Statistics of decisions: the confusion matrix, and what metrics make of it.

Exact from the arg max, smooth from softmax(outputs / temperature). Every metric of
predicted labels is a function of the matrix; the groups are what metrics are linear in:
recalls (accuracy, cost), shares of predictions (precision), sorted recalls (the worst
class), their mean (balanced accuracy), and the matrix itself.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.metrics.confusion import predict_labels
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.statistics.many_classes import MANY, groups_of_many


@STATISTICS.register("decisions")
@dataclass(frozen=True)
class ConfusionStatistics(Statistics):
    """Rates of decisions by label, for K = max(C, 2) classes.

    Of many classes there is no matrix: see `many_classes`.

    Attributes:
        temperature: temperature of the softmax that stands for the arg max.
        named: whether shares of decisions, accuracy and precisions have groups of their
            own, though they follow from the rates.
    """

    temperature: float = 0.5
    named: bool = False
    name: ClassVar[str] = "decisions"
    near: ClassVar[str] = "rates"

    def among_groups(self) -> "ConfusionStatistics":
        """Return the statistics with all rates by their names."""
        return replace(self, named=True)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the decisions, or of random ones as likely as they."""
        if outputs.shape[-1] > MANY:
            temperature = self.temperature if smooth else None
            return groups_of_many(outputs, targets, weights, temperature)
        decisions = self._random(outputs) if smooth else _decided(outputs)
        return self._groups(decisions, targets, weights)

    def _random(self, outputs: Tensor) -> Tensor:
        """Return the probabilities of decisions, [B, N, K]."""
        logits = outputs / self.temperature
        if outputs.shape[-1] == 1:
            positive = logits[..., 0].sigmoid()
            return torch.stack([1 - positive, positive], -1)
        return logits.softmax(-1)

    def _groups(
        self, decisions: Tensor, targets: Tensor, weights: Tensor | None
    ) -> Groups:
        """Return groups of decisions [B, N, K], all of them rates in [0, 1]."""
        classes = decisions.shape[-1]
        labels = one_hot(targets.long(), classes).to(decisions)
        prior = labels.mean(0).double()
        if weights is None:
            counts = torch.einsum("nk,bnj->bkj", labels, decisions)
            totals = labels.sum(0)[None, :, None]
        else:
            chosen = labels * weights.to(decisions)[..., None]
            counts = torch.einsum("bnk,bnj->bkj", chosen, decisions)
            totals = chosen.sum(1)[..., None]
        # A class without examples has no errors and no hits.
        matrix = (counts / totals.clamp_min(1e-12)).double()
        named = _named(counts.double()) if self.named else {}
        if classes == 2:
            return {"rates": matrix[:, :, 1], **named}
        recalls = matrix.diagonal(dim1=1, dim2=2)
        shares = torch.einsum("k,bkj->bj", prior, matrix)
        return {
            "rates": torch.cat([recalls, shares], 1),
            "mean": recalls.mean(1, keepdim=True),
            "matrix": matrix.flatten(1),
            "sorted": recalls.sort(1).values,
            **named,
        }


def _named(counts: Tensor) -> Groups:
    """Return rates of counts [B, K, K] of labels by decisions."""
    total = counts.sum((1, 2))[:, None].clamp_min(1e-12)
    hits, decided = counts.diagonal(dim1=1, dim2=2), counts.sum(1)
    first = 1 if counts.shape[1] == 2 else 0  # of two shares the second says both
    return {
        "accuracy": hits.sum(1, keepdim=True) / total,
        "decided": decided[:, first:] / total,
        "precisions": hits / decided.clamp_min(1e-12),
    }


def _decided(outputs: Tensor) -> Tensor:
    """Return 1 for the decision and 0 for other classes, [B, N, K]."""
    classes = max(outputs.shape[-1], 2)
    return one_hot(predict_labels(outputs), classes).float()


MOST_GRADES = 30
ROUNDING = 0.15
"""Width of the smooth step between two whole numbers."""


@STATISTICS.register("rounded-values")
@dataclass(frozen=True)
class RoundedStatistics(Statistics):
    """Decisions that predicted values become when they are rounded.

    Targets are a few whole numbers, grades say. Values beyond the least and the
    greatest of them count as these.

    Attributes:
        low: least target.
        grades: number of whole numbers from the least to the greatest target, >= 2.
    """

    low: int = 0
    grades: int = 2
    name: ClassVar[str] = "rounded values"
    near: ClassVar[str] = "rates"

    @property
    def reads(self) -> Reads:
        """Predicted values."""
        return "values"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there is one output, and targets are a few whole numbers."""
        if outputs.shape[-1] > 1 or bool((targets != targets.round()).any()):
            return False
        low, high = targets.aminmax()
        return 0 < int(high - low) < MOST_GRADES

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics of these whole numbers."""
        low, high = (int(end) for end in targets.aminmax())
        return replace(self, low=low, grades=high - low + 1)

    def strata(self, targets: Tensor) -> Tensor:
        """Return the targets as numbers [N]."""
        return targets.flatten()

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the decisions, or of random ones as likely as they."""
        limits = torch.arange(1, self.grades).to(outputs) + self.low - 0.5
        if smooth:
            above = ((outputs - limits) / ROUNDING).sigmoid()
        else:
            above = (outputs >= limits).to(outputs)
        least, none = torch.ones_like(outputs), torch.zeros_like(outputs)
        decisions = torch.cat([least, above], -1) - torch.cat([above, none], -1)
        labels = targets.flatten().long() - self.low
        return ConfusionStatistics()._groups(decisions, labels, weights)

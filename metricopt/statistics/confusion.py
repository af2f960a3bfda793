"""Statistics of decisions: the confusion matrix, and what metrics make of it.

Exact from the arg max, smooth from softmax(outputs / temperature). Every metric of
predicted labels is a function of the matrix; the groups are what metrics are linear in:
accuracy, recalls and shares of predictions, precisions, F, overlaps (Jaccard indices),
the means of these over classes, sorted recalls (the worst class), agreements beyond
chance, and the matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.metrics.confusion import predict_labels
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, PartlyRead, Statistics
from metricopt.statistics.many_classes import MANY, groups_of_many

SMALL = 1e-12


@STATISTICS.register("decisions")
@dataclass(frozen=True)
class ConfusionStatistics(PartlyRead):
    """Rates of decisions by label, for K = max(C, 2) classes.

    Of many classes there is no matrix: see `many_classes`.

    Attributes:
        temperature: temperature of the softmax that stands for the arg max.
    """

    temperature: float = 0.5
    name: ClassVar[str] = "decisions"
    near: ClassVar[str] = "rates"

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the decisions, or of random ones as likely as they."""
        if outputs.shape[-1] > MANY:
            temperature = self.temperature if smooth else None
            return groups_of_many(outputs, targets, weights, temperature)
        decisions = decisions_of(outputs, self.temperature if smooth else None)
        return self._groups(decisions, targets, weights)

    def _groups(
        self, decisions: Tensor, targets: Tensor, weights: Tensor | None
    ) -> Groups:
        """Return groups of decisions [B, N, K], all of them rates in [0, 1]."""
        classes = decisions.shape[-1]
        labels = one_hot(targets.long(), classes).to(decisions)
        if weights is None:
            return self.of_counts(torch.einsum("nk,bnj->bkj", labels, decisions))
        chosen = labels * weights.to(decisions)[..., None]
        return self.of_counts(torch.einsum("bnk,bnj->bkj", chosen, decisions))

    def of_counts(self, counts: Tensor) -> Groups:
        """Return the groups of counts by label and decision, [B, K, K]."""
        counts = counts.double()
        labelled = counts.sum(2)
        # A class without examples has no errors and no hits.
        matrix = counts / labelled.clamp_min(SMALL)[..., None]
        prior = labelled / labelled.sum(1, keepdim=True).clamp_min(SMALL)
        recalls = matrix.diagonal(dim1=1, dim2=2)
        shares = torch.einsum("bk,bkj->bj", prior, matrix)
        hits = prior * recalls
        both = (prior + shares).clamp_min(SMALL)
        each = {
            "recalls": recalls,
            "precisions": hits / shares.clamp_min(SMALL),
            "f": 2 * hits / both,
            "overlaps": hits / (both - hits).clamp_min(SMALL),
        }
        means = {"mean " + name: partial(_mean, of) for name, of in each.items()}
        more: dict[str, Callable[[], Tensor]] = {
            "rates": lambda: torch.cat([recalls, shares], 1),
            "matrix": lambda: matrix.flatten(1),
            "sorted": lambda: recalls.sort(1).values,
            "agreements": lambda: _agreements(prior[..., None] * matrix),
            "accuracy": lambda: hits.sum(1, keepdim=True),
            "decided": lambda: shares[:, 1:],
            "geometric mean": lambda: _mean(recalls.clamp_min(SMALL).log()).exp(),
        }
        if matrix.shape[1] == 2:
            more["rates"] = lambda: matrix[:, :, 1]
            del more["matrix"], each["recalls"]
        found = {
            name: make() for name, make in (more | means).items() if self.is_read(name)
        }
        return found | {name: of for name, of in each.items() if self.is_read(name)}


def _mean(rates: Tensor) -> Tensor:
    """Return the mean of rates [B, K] over classes, [B, 1]."""
    return rates.mean(1, keepdim=True)


def _agreements(joint: Tensor) -> Tensor:
    """Return agreements beyond chance of shares by label and decision [B, K, K].

    Cohen's kappa, for more than two classes also with linear and quadratic weights
    (Cohen, 1968), and Matthews' correlation (Gorodkin, 2004); shape [B, 2] or [B, 4].
    """
    labels, decisions = joint.sum(2), joint.sum(1)
    chance = labels[:, :, None] * decisions[:, None]
    place = torch.arange(joint.shape[1]).to(joint)
    apart = (place[:, None] - place).abs()
    weights = [(apart > 0).to(joint), apart, apart.square()]
    if joint.shape[1] == 2:
        weights = weights[:1]
    found = [
        1
        - (joint * weight).sum((1, 2)) / (chance * weight).sum((1, 2)).clamp_min(SMALL)
        for weight in weights
    ]
    agreed = joint.diagonal(dim1=1, dim2=2).sum(1) - (labels * decisions).sum(1)
    free = (1 - labels.square().sum(1)) * (1 - decisions.square().sum(1))
    return torch.stack([*found, agreed / free.clamp_min(SMALL).sqrt()], 1)


def decisions_of(outputs: Tensor, temperature: float | None) -> Tensor:
    """Return decisions of outputs [B, N, C], shape [B, N, K] for K = max(C, 2) classes.

    Without a temperature it is 1 for the decision and 0 for other classes, else the
    probabilities of the softmax at it.
    """
    if temperature is None:
        return one_hot(predict_labels(outputs), max(outputs.shape[-1], 2)).float()
    logits = outputs / temperature
    if outputs.shape[-1] == 1:
        positive = logits[..., 0].sigmoid()
        return torch.stack([1 - positive, positive], -1)
    return logits.softmax(-1)


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

"""Statistics of several labels for each example, of which each is decided by itself.

Exact from the sign of the logit, smooth from sigmoid(logit / temperature). A label has
its hits, its predictions and its positives; metrics average their ratios over labels
(macro), take the ratio of their sums (micro), or average over examples (samples). Every
such mean is a group of its own: a metric that is linear in it is known after two
queries, however many labels there are.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics
from metricopt.statistics.strata import strata_of_label_sets

SMALL = 1e-12


@STATISTICS.register("label-decisions")
@dataclass(frozen=True)
class LabelStatistics(Statistics):
    """Counts of decisions by label, and their ratios by label and by example.

    Outputs are logits [B, N, K] of K labels, targets zeros and ones [N, K].

    Attributes:
        temperature: temperature of the sigmoid that stands for the sign.
    """

    temperature: float = 0.5
    name: ClassVar[str] = "label decisions"
    near: ClassVar[str] = "rates"

    @property
    def reads(self) -> Reads:
        """Logits of labels."""
        return "labels"

    def strata(self, targets: Tensor) -> Tensor:
        """Return the label sets as numbers [N]."""
        return strata_of_label_sets(targets)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the decisions, or of random ones as likely as they."""
        decided = (outputs / self.temperature).sigmoid()
        if not smooth:
            decided = (outputs > 0).to(outputs)
        truth = targets.to(outputs)
        if weights is None:
            weights = outputs.new_ones(1, len(truth))
        shares = weights.to(outputs).expand(len(outputs), -1)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(SMALL)
        found = _of_labels(_by_label(decided, truth, shares))
        return found | _of_examples(decided, truth, shares)


class _Counts(NamedTuple):
    """Shares of examples by label, each [B, K]: right positives, predicted, true."""

    hits: Tensor
    predicted: Tensor
    true: Tensor


def _by_label(decided: Tensor, truth: Tensor, shares: Tensor) -> _Counts:
    """Count decisions [B, N, K] of labels [N, K], of examples with shares [B, N]."""
    row = shares[:, None]
    return _Counts(
        (row @ (decided * truth))[:, 0].double(),
        (row @ decided)[:, 0].double(),
        (shares @ truth).double(),
    )


def _of_labels(counts: _Counts) -> Groups:
    """Return ratios of every label, their means over labels, and those of sums."""
    hits, predicted, true = counts
    summed = _Counts(*(part.sum(1, keepdim=True) for part in counts))
    recalls = _ratio(hits, true)
    kinds = {
        "recall": recalls,
        "precision": _ratio(hits, predicted),
        "F": _ratio(2 * hits, predicted + true),
        "Jaccard": _ratio(hits, predicted + true - hits),
    }
    groups = {"rates": torch.cat([recalls, predicted], 1)}
    for name, ratios in kinds.items():
        groups[f"{name} of labels"] = ratios
        groups[f"mean {name} of labels"] = ratios.mean(1, keepdim=True)
    weights = true / summed.true.clamp_min(SMALL)
    groups["weighted F of labels"] = (weights * kinds["F"]).sum(1, keepdim=True)
    hits, predicted, true = summed
    groups["F of all"] = _ratio(2 * hits, predicted + true)
    groups["Jaccard of all"] = _ratio(hits, predicted + true - hits)
    groups["precision of all"] = _ratio(hits, predicted)
    labels = recalls.shape[1]
    groups["counts of all"] = torch.cat([hits, predicted], 1) / labels
    return groups


def _of_examples(decided: Tensor, truth: Tensor, shares: Tensor) -> Groups:
    """Return means over examples: of ratios, of full agreement, of empty label sets.

    Conventions differ in what an example without a label is worth, so their shares
    stand beside the ratios.
    """
    hits, predicted, true = (decided * truth).sum(-1), decided.sum(-1), truth.sum(-1)
    right = (decided * truth + (1 - decided) * (1 - truth)).clamp_min(SMALL)
    silent = (1 - decided).clamp_min(SMALL).log().sum(-1).exp()
    empty = silent * (true == 0)
    ratios = {
        "F": _ratio(2 * hits, predicted + true),
        "Jaccard": _ratio(hits, predicted + true - hits),
        "precision": _ratio(hits, predicted),
        "recall": _ratio(hits, true.expand_as(hits)),
    }
    means = {
        f"{name} of examples": torch.stack([ratio, empty, silent], -1)
        for name, ratio in ratios.items()
    }
    means["exact matches"] = right.log().sum(-1, keepdim=True).exp()
    return {
        name: torch.einsum("bnv,bn->bv", values, shares).double()
        for name, values in means.items()
    }


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Return part / whole, 0 where there is nothing."""
    return torch.where(whole > SMALL, part / whole.clamp_min(SMALL), 0.0)

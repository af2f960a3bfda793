"""Metrics that people tune decisions for, and an objective under a bound."""

import torch
from torch import Tensor

from benchmarks.problems.fitted.table import GROUP
from benchmarks.runs.spec import SUITE_METRICS, Unit, metric_of
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import (
    CountMetric,
    Counts,
    mean_over_present,
    predict_labels,
    ratio,
)
from metricopt.metrics.constrained import BoundedMetric, ConstrainedMetric
from metricopt.metrics.counted import LegacyJaccard
from metricopt.reading.columns import Columned


@SUITE_METRICS.register("accuracy")
class Accuracy(LegacyJaccard):
    """Share of right labels, in [0, 1], under its own name."""

    name = "accuracy"


@SUITE_METRICS.register("balanced-accuracy")
class BalancedAccuracy(CountMetric):
    """Mean of TP / (TP + FN) over the classes that occur in the labels, in [0, 1]."""

    name = "balanced-accuracy"
    higher_is_better = True

    def _scores(self, counts: Counts) -> Tensor:
        return mean_over_present(_recalls(counts), counts)


@SUITE_METRICS.register("precision")
class Precision(CountMetric):
    """TP / (TP + FP) of the positive class, 0 if nothing is called positive."""

    name = "precision"
    higher_is_better = True
    binary = True

    def _scores(self, counts: Counts) -> Tensor:
        hits = counts.true_positives
        return ratio(hits, hits + counts.false_positives)[:, 1]


@SUITE_METRICS.register("sensitivity")
class Sensitivity(CountMetric):
    """TP / (TP + FN) of the positive class, its recall, in [0, 1]."""

    name = "sensitivity"
    higher_is_better = True
    binary = True

    def _scores(self, counts: Counts) -> Tensor:
        return _recalls(counts)[:, 1]


@SUITE_METRICS.register("least-recall")
class LeastRecall(CountMetric):
    """Least TP / (TP + FN) of the classes that occur in the labels, in [0, 1]."""

    name = "least-recall"
    higher_is_better = True

    def _scores(self, counts: Counts) -> Tensor:
        present = counts.true_positives + counts.false_negatives > 0
        return torch.where(present, _recalls(counts), 1.0).amin(-1)


def _recalls(counts: Counts) -> Tensor:
    """Return TP / (TP + FN) of every class, [B, C]."""
    hits = counts.true_positives
    return ratio(hits, hits + counts.false_negatives)


@SUITE_METRICS.register("equalized-odds")
class EqualizedOddsGap(Metric):
    """Largest gap between groups in the true or the false positive rate, in [0, 1].

    Source: Fairlearn, `equalized_odds_difference`; Hardt et al., NeurIPS 2016.
    """

    name = "equalized-odds"
    higher_is_better = False
    columns = (GROUP,)

    def _value(self, outputs: Tensor, targets: Columned) -> float:
        decided, labels = predict_labels(outputs), targets.targets
        groups, gaps = targets.columns[GROUP], []
        for label in (0, 1):
            of_label = labels == label
            rates = torch.stack(
                [
                    decided[of_label & (groups == group)].double().mean()
                    for group in groups.unique()
                ]
            )
            gaps.append(rates.max() - rates.min())
        return max(gaps).item()


@SUITE_METRICS.register("bounded")
class Bounded(ConstrainedMetric):
    """An objective under one bound, by the names of their metrics.

    Args:
        objective: the metric to improve.
        of: the metric with the bound.
        at_least: the bound, from below.
        at_most: the bound, from above, if there is none from below.
    """

    def __init__(
        self,
        objective: str,
        of: str,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        bounded = metric_of(Unit(of))
        bound = (
            BoundedMetric(bounded, "at most", at_most or 0.0)
            if at_least is None
            else BoundedMetric(bounded, "at least", at_least)
        )
        super().__init__(metric_of(Unit(objective)), [bound])

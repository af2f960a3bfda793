"""Black boxes that no statistic was made for, most of them scikit-learn's.

They test whether a method that sees outputs can do with a metric it does not know.
"""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from benchmarks.runs.spec import SUITE_METRICS
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import predict_labels
from metricopt.metrics.counted import CostWeightedError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import class_probabilities

BINS = 15
LOG_LOSS_LIMIT = 10.0
"""Greatest log loss that is told apart, in nats."""


def _sklearn() -> Any:
    # Not above: a look-up of any metric imports this file, and it takes seconds.
    from sklearn import metrics

    return metrics


class _OfDecisions(Metric):
    """A metric of labels and decisions, numpy integers [N]."""

    higher_is_better = True

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        predicted = predict_labels(outputs)
        return float(self._score(targets.cpu().numpy(), predicted.cpu().numpy()))

    @abstractmethod
    def _score(self, targets: Any, predicted: Any) -> float: ...


class _OfProbabilities(Metric):
    """A metric of labels [N] and probabilities [N, K]."""

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(self._score(targets, class_probabilities(outputs)))

    @abstractmethod
    def _score(self, targets: Tensor, shares: Tensor) -> float: ...


@SUITE_METRICS.register("matthews")
class Matthews(_OfDecisions):
    """Matthews' correlation coefficient, in [-1, 1]."""

    name, low = "matthews", -1.0

    def _score(self, targets: Any, predicted: Any) -> float:
        return _sklearn().matthews_corrcoef(targets, predicted)


@SUITE_METRICS.register("kappa")
class Kappa(_OfDecisions):
    """Cohen's kappa of labels and decisions, in [-1, 1]."""

    name, low = "kappa", -1.0

    def _score(self, targets: Any, predicted: Any) -> float:
        return _sklearn().cohen_kappa_score(targets, predicted)


@SUITE_METRICS.register("f2")
class F2(_OfDecisions):
    """F-measure that weighs recall twice, of the positive class or class mean."""

    name = "f2"

    def _score(self, targets: Any, predicted: Any) -> float:
        average = "binary" if max(targets.max(), predicted.max()) < 2 else "macro"
        known = {"average": average, "zero_division": 0}
        return _sklearn().fbeta_score(targets, predicted, beta=2, **known)


@SUITE_METRICS.register("two-worst-recalls")
class TwoWorstRecalls(_OfDecisions):
    """Mean of the two least recalls of classes, in [0, 1]."""

    name = "two-worst-recalls"

    def _score(self, targets: Any, predicted: Any) -> float:
        known = {"average": None, "zero_division": 0}
        recalls = _sklearn().recall_score(targets, predicted, **known)
        return sorted(recalls)[:2] @ torch.tensor([0.5, 0.5]).numpy()


@SUITE_METRICS.register("random-cost")
class RandomCost(Metric):
    """Mean cost of mistakes, their costs drawn uniformly from [0, 1], in [0, 1].

    Args:
        seed: seed of the costs.
    """

    name = "random-cost"
    higher_is_better = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def matrix(self, classes: int) -> Tensor:
        """Return the cost of calling class i (row) class j (column), [K, K]."""
        generator = make_generator("random-cost", classes, self.seed)
        costs = torch.rand(classes, classes, generator=generator, dtype=torch.float64)
        return costs.fill_diagonal_(0.0)

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        costs = CostWeightedError(self.matrix(max(outputs.shape[-1], 2)))
        return costs.value(outputs, targets)


@SUITE_METRICS.register("calibration-error")
class CalibrationError(_OfProbabilities):
    """Expected calibration error of the predicted class, in [0, 1].

    Source: Guo et al., ICML 2017, eq. (3), with 15 bins of equal width.
    """

    name = "calibration-error"
    higher_is_better = False

    def _score(self, targets: Tensor, shares: Tensor) -> float:
        sure, predicted = shares.max(1)
        places = (sure * BINS).ceil().clamp(1, BINS).long() - 1
        gaps = sure.new_zeros(BINS).index_add(
            0, places, (predicted == targets).double() - sure
        )
        return gaps.abs().sum().item() / len(targets)


@SUITE_METRICS.register("log-loss")
class LogLoss(_OfProbabilities):
    """Mean negative log-likelihood of the labels in nats, at most 10."""

    name, unit = "log-loss", "nats"
    higher_is_better = False
    high = LOG_LOSS_LIMIT

    def _score(self, targets: Tensor, shares: Tensor) -> float:
        labels = list(range(shares.shape[1]))
        given = targets.cpu().numpy(), shares.cpu().numpy()
        found = _sklearn().log_loss(*given, labels=labels)
        return min(found, LOG_LOSS_LIMIT)


@SUITE_METRICS.register("reciprocal-rank")
class ReciprocalRank(_OfProbabilities):
    """Mean reciprocal rank of the right class, in (0, 1]; ties count against it."""

    name = "reciprocal-rank"
    higher_is_better = True

    def _score(self, targets: Tensor, shares: Tensor) -> float:
        own = shares.gather(1, targets[:, None].long())
        return (1 / (shares >= own).sum(1).double()).mean().item()


@SUITE_METRICS.register("sure-accuracy")
class SureAccuracy(_OfProbabilities):
    """Share of examples that are right with at least some confidence, in [0, 1].

    Args:
        confidence: least probability of the predicted class.
    """

    name = "sure-accuracy"
    higher_is_better = True

    def __init__(self, confidence: float = 0.8) -> None:
        self.confidence = confidence

    def _score(self, targets: Tensor, shares: Tensor) -> float:
        sure, predicted = shares.max(1)
        counted = (predicted == targets) & (sure >= self.confidence)
        return counted.double().mean().item()

"""Metrics of one episode. What a diverged learner returns counts, and is no error."""

import torch
from torch import Tensor

from benchmarks.runs.notes import TASK_DIVERGED
from benchmarks.runs.spec import SUITE_METRICS
from metricopt.metrics.base import Metric

ACCURACY, ERROR = "task-accuracy", "squared-error"


@SUITE_METRICS.register("task-accuracy")
class TaskAccuracy(Metric):
    """Share of the queries whose class is called right; an output of NaN is wrong."""

    name = ACCURACY
    higher_is_better = True

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        right = outputs.argmax(1) == targets
        return float((right & outputs.isfinite().all(1)).double().mean())


@SUITE_METRICS.register("squared-error")
class SquaredError(Metric):
    """Mean squared error of the queries, at most 100.

    Two waves of the sine problem differ by 10 at most. A learner that does worse, or
    returns NaN, counts as one that does as badly.
    """

    name = ERROR
    higher_is_better = False
    unit = "squared error"
    high = 100.0

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        error = (outputs - targets).double().square().mean()
        return float(error.nan_to_num(self.high, self.high).clamp(max=self.high))


@SUITE_METRICS.register("task-diverged")
class TaskDiverged(Metric):
    """1 where an output of an episode is not finite, else 0."""

    name = TASK_DIVERGED
    higher_is_better = False

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(not torch.isfinite(outputs).all())

"""The confusion matrix of an adapted network, read from the statistics of a task."""

import torch
from torch import Tensor

from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import Groups
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task


def knows_decisions(task: Task) -> bool:
    """Return whether the outputs of a task are scores of classes, with labels."""
    statistics = task.statistics
    return statistics is not None and not statistics.compares


def statistics_of(task: Task) -> ObservedStatistics:
    """Return the statistics of decisions of a task; see `Method.suits`."""
    statistics = task.statistics
    assert statistics is not None
    return statistics.of_kind(ConfusionStatistics())


def confusion_rates(groups: Groups) -> Tensor:
    """Return the share of every decision among the examples of every label.

    Args:
        groups: confusion statistics, exact or smooth.

    Returns:
        Rates, shape [B, K, K], labels first, every row adding up to 1.
    """
    if "matrix" not in groups:
        positive = groups["rates"]
        return torch.stack([1 - positive, positive], -1)
    matrix = groups["matrix"]
    classes = round(matrix.shape[1] ** 0.5)
    return matrix.view(-1, classes, classes)


def class_errors(groups: Groups) -> Tensor:
    """Return the error rate of every class, shape [B, K]."""
    return 1 - confusion_rates(groups).diagonal(dim1=1, dim2=2)

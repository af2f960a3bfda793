"""A metric tried on outputs and labels, as `finetune` does before it searches."""

import torch

from metricopt.metrics.base import is_integer
from metricopt.reading.meaning import Meaning
from metricopt.reading.metric import check_direction, check_targets
from metricopt.reading.outputs import are_embeddings

LABELLED = Meaning("logits", "labels")


def check_metric(metric, outputs, targets):
    """The metric, once targets suit it and, for labels [N], its direction is right."""
    check_targets(metric, targets)
    initial = metric.value(outputs, targets)
    if are_labelled(outputs, targets):
        check_direction(metric, LABELLED, outputs, targets, initial)
    return initial


def are_labelled(outputs, targets):
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return False
    if outputs.ndim != 2 or are_embeddings(outputs):
        return False
    if targets.ndim != 1 or not is_integer(targets):
        return False
    low, high = targets.aminmax()
    return bool((low >= 0) & (high < max(outputs.shape[1], 2)))

"""The base class of metrics that wrap another one."""

from metricopt.metrics.base import Metric


class WrappedMetric(Metric):
    """Takes over name, direction, range and inputs of the metric it wraps.

    Args:
        metric: what is evaluated.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.name, self.higher_is_better = metric.name, metric.higher_is_better
        self.unit, self.low, self.high = metric.unit, metric.low, metric.high
        self.needs_two_classes = metric.needs_two_classes
        self.takes_tuples = metric.takes_tuples
        self.reads, self.shape = metric.reads, metric.shape
        self.direction_declared = metric.direction_declared
        self.range_remedy = metric.range_remedy

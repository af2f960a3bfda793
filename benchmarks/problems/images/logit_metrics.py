"""Metrics of image networks, whose outputs depend on the loss that trains them."""

from torch import Tensor

from benchmarks.runs.spec import Unit, metric_of
from metricopt.losses.contract import Loss, properties
from metricopt.metrics.base import Metric, WrappedMetric


class OnLogits(WrappedMetric):
    """A metric of the first C outputs: the others are there for the loss alone.

    Args:
        metric: what is evaluated.
        classes: number of classes C.
    """

    def __init__(self, metric: Metric, classes: int) -> None:
        super().__init__(metric)
        self.classes = classes

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return self.metric.value(outputs[:, : self.classes], targets)

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.metric.values(outputs[..., : self.classes], targets)


def metric_under(loss: Loss, unit: Unit, classes: int) -> Metric:
    """Return a metric of the outputs of a network that a loss trains.

    If the loss trains every output by itself, AUCPR ranks by raw outputs.

    Args:
        loss: what trains the network.
        unit: the metric.
        classes: number of classes C; outputs may be more.
    """
    known = properties(loss)
    if unit == Unit("aucpr") and known.independent:
        unit = Unit("aucpr-macro-logits")
    metric = metric_of(unit)
    return metric if known.outputs_per_class == 1 else OnLogits(metric, classes)

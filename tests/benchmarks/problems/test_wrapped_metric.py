"""A wrapped metric says of itself all that the metric it wraps does."""

import pytest

from benchmarks.arms.contract import AuditedMetric
from metricopt.metrics.base import METRICS, Metric
from metricopt.reading.callables import make_metric


@pytest.mark.parametrize("name", list(METRICS))
def test_every_attribute_is_taken_over(name):
    metric = make_metric(name)
    wrapped = AuditedMetric(metric)
    declared = list(Metric.__annotations__)
    assert {"name", "needs_two_classes", "reads"} < set(declared)
    for attribute in declared:
        assert getattr(wrapped, attribute) == getattr(metric, attribute)

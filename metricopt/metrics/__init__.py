"""Evaluation metrics, one per file; `METRICS` knows them by name."""

import sys

from metricopt.metrics.base import METRICS, Metric, from_cost, to_cost
from metricopt.metrics.callables import CallableMetric, make_metric
from metricopt.metrics.checks import check_metric
from metricopt.registry import import_units

__all__ = [
    "METRICS",
    "CallableMetric",
    "Metric",
    "check_metric",
    "from_cost",
    "make_metric",
    "to_cost",
]

# So that whoever imports the registry finds every metric in it.
import_units(sys.modules[__name__])

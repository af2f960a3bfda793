"""From a unit of a spec to its metric: one of the library, or one of the suite."""

from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS, Metric
from metricopt.registry import Registry

SUITE_METRICS: Registry[type[Metric]] = Registry("suite metric", "benchmarks.problems")
"""Metrics that make sense for one problem of the suite only."""


def metric_of(unit: Unit) -> Metric:
    """Return the metric that a unit names, with its settings.

    Raises:
        ConfigError: if neither the library nor the suite has it, or it has no such
            setting; the message lists the known names.
    """
    if unit.name not in METRICS and unit.name not in SUITE_METRICS:
        known = ", ".join(sorted({*METRICS, *SUITE_METRICS}))
        raise ConfigError(f"unknown metric {unit.name!r}; known: {known}")
    registry = METRICS if unit.name in METRICS else SUITE_METRICS
    try:
        return registry.get(unit.name)(**unit.settings)
    except TypeError as error:
        raise ConfigError(f"metric {unit.name!r}: {error}") from error

"""From units of specs to metrics."""

import pytest

from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS


def test_metrics_of_the_library_and_of_the_suite():
    assert metric_of(Unit("mcr")).name == "mcr"
    cost = metric_of(Unit("vehicle-animal-cost"))
    assert (cost.name, cost.higher_is_better) == ("vehicle-animal-cost", False)


def test_settings_are_those_of_the_metric(monkeypatch):
    class Scaled(METRICS.get("mcr")):
        def __init__(self, scale=1.0):
            self.high = scale

    monkeypatch.setitem(METRICS._units, "scaled", Scaled)
    assert metric_of(Unit("scaled")).high == 1.0
    assert metric_of(Unit("scaled", {"scale": 5.0})).high == 5.0
    with pytest.raises(ConfigError, match=r"metric 'scaled': .*unexpected .*'factor'"):
        metric_of(Unit("scaled", {"factor": 5.0}))


def test_an_unknown_metric_lists_all_known_ones():
    text = r"unknown metric 'f3'; known: .*f1.*mcr.*vehicle-animal-cost"
    with pytest.raises(ConfigError, match=text):
        metric_of(Unit("f3"))

"""Specs: their identity, their folder, and what they refuse."""

import hashlib
import math
from pathlib import Path

import pytest

from benchmarks.runs.codec import decode
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec, Unit, check_unique, metric_of
from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS
from tests.benchmarks.runs.record_cases import make_record, make_spec

SPEC = make_spec()


def test_digest_is_sha256_of_canonical_json():
    text = (
        '{"also":[],"arm":{"from_theta":false,"kind":"method","name":"cma-es",'
        '"schedule":{},"settings":{}},"block":"balanced",'
        '"budget":{"gradient_steps":0,"queries":0},"column":"a9a/f1",'
        '"diagnose":false,"experiment":"table3","meta_tests":1,'
        '"metric":{"name":"f1","settings":{}},'
        '"pipeline":{"name":"tabular","settings":{"a":[2],"b":1}},"replicate":2,'
        '"row":"cma-es","tier":"smoke"}'
    )
    assert SPEC.digest == hashlib.sha256(text.encode()).hexdigest()


def test_digest_ignores_the_order_of_settings_and_tells_values_apart():
    same = make_spec(pipeline=Unit("tabular", {"a": (2,), "b": 1}))
    assert same.digest == SPEC.digest
    other = make_spec(pipeline=Unit("tabular", {"a": [2], "b": 1.5}))
    assert other.digest != SPEC.digest


def test_the_number_of_value_functions_is_part_of_the_identity_unless_it_is_one():
    assert "value_functions" not in SPEC.to_json()
    several = make_spec(value_functions=3)
    assert several.to_json() == SPEC.to_json() | {"value_functions": 3}
    assert several.digest != SPEC.digest
    assert several.cell == SPEC.cell
    for spec in (SPEC, several):
        assert decode(RunSpec, spec.to_json()) == spec
        record = make_record(spec)
        assert RunRecord.from_json(record.to_json()) == record


def test_folder_is_readable_and_unique():
    folder = f"table3/smoke/balanced-cma-es-a9a-f1-r2-{SPEC.digest[:8]}"
    assert SPEC.folder == Path(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tier": "../x"}, "tier must be letters"),
        ({"experiment": ""}, "experiment must be letters"),
        ({"row": ""}, "must not be empty"),
        ({"row": "half a pair: \ud800"}, "expected texts that UTF-8 can hold"),
        ({"replicate": -1}, "replicate must be 0 or more, got -1"),
        ({"value_functions": 0}, "value_functions must be 1 or more, got 0"),
        ({"metric": Unit("f1", {"a": math.nan})}, "expected values that JSON can hold"),
        ({"metric": Unit("f1", {"a": object()})}, "expected values that JSON can hold"),
    ],
)
def test_bad_spec(fields, message):
    with pytest.raises(ConfigError, match=message):
        make_spec(**fields)


def test_a_label_tells_the_settings():
    assert Unit("f1").label == "f1"
    assert Unit("recall", {"k": 4, "a": "x"}).label == "recall(a=x, k=4)"


def test_duplicates_are_named():
    again = make_spec(metric=Unit("mcr"))
    place = "table3/smoke/balanced/cma-es/a9a/f1/2"
    for twice in ([SPEC, SPEC], [SPEC, again]):
        with pytest.raises(ConfigError, match=f"got two for {place}"):
            check_unique(twice)
    check_unique([SPEC, make_spec(replicate=3)])


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

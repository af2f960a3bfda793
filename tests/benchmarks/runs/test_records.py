"""Records: what they hold, what they refuse, and their JSON."""

import json
import math

import pytest

from benchmarks.runs.record import RunRecord, SchemaError, TracePoint
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec, make_trace

SPEC = make_spec(column="a9a/jaccard", also=(Unit("jaccard-legacy"),))
FULL = RunRecord(
    SPEC,
    "done",
    data={"variant": "a9a", "digest": "ab"},
    environment={"device": "cpu", "commit": "c0ffee"},
    seeds={"split": 2**63},
    queries=10,
    shared_queries=4,
    queried={"observe": 16},
    gradient_steps=50,
    seconds={"total": 0.1 + 0.2},
    trace=make_trace("jaccard", (0, 3, None, [0.1, 0.2]), (5, 10, [0.3], [0.4])),
    observe={"jaccard": (0.1, 0.25)},
    test={"jaccard": (1 / 3, 0.2), "jaccard-legacy": (0.8, 0.9)},
    notes={"spearman": 0.9, "health_true": [0.1, 0.2]},
)


def test_round_trip_keeps_every_field():
    assert RunRecord.from_json(FULL.to_json()) == FULL
    content = json.loads(FULL.to_json())
    assert content["schema"] == 3
    assert content["test"] == {"jaccard": [1 / 3, 0.2], "jaccard-legacy": [0.8, 0.9]}
    assert content["trace"][0] == {
        "step": 0,
        "queries": 3,
        "observe": {},
        "test": {"jaccard": [0.1, 0.2]},
    }


def test_values_are_those_of_the_own_metric_unless_another_is_named():
    assert FULL.values("test") == [1 / 3, 0.2]
    assert FULL.values("test", "jaccard-legacy") == [0.8, 0.9]
    assert FULL.values("observe") == [0.1, 0.25]
    assert FULL.values("observe", "jaccard-legacy") == []


def test_non_finite_numbers_become_null():
    record = make_record(SPEC, [0.5, math.inf], notes={"spearman": [math.nan, 1]})
    assert record.values("test") == [0.5, None]
    assert record.notes == {"spearman": [None, 1]}
    assert not record.finished
    assert RunRecord.from_json(record.to_json()) == record
    assert TracePoint(0, 0, test={"f1": [math.nan]}).test == {"f1": [None]}


def test_only_complete_done_records_are_finished():
    assert make_record(SPEC, [0.5]).finished
    assert not make_record(SPEC, []).finished
    assert not make_record(SPEC, [0.5], status="diverged").finished
    assert not make_record(SPEC, [], test={"jaccard-legacy": [0.5]}).finished


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "fine"}, "status must be one of done, diverged, failed, got 'fine"),
        ({"queried": {"all": 1}}, "queried must be one of observe, train, test"),
        ({"test": {"f1": [1]}}, "a metric .* one of jaccard, jaccard-legacy, got 'f1'"),
        ({"trace": make_trace("f1", (0, 0, None, [1]))}, "got 'f1'"),
        ({"notes": {"a": object()}}, "expected values that JSON can hold"),
    ],
)
def test_bad_records(fields, message):
    with pytest.raises(ConfigError, match=message):
        make_record(SPEC, **fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("seeds"), "a record lacks seeds"),
        (lambda c: c.update(sedes={}), r"complete record: .*extra fields .*\(sedes\)"),
        (lambda c: c.pop("digest"), "a record lacks digest"),
        (lambda c: c["trace"][0].pop("step"), "a trace point lacks step"),
        (lambda c: c["trace"][0].update(stp=1), r"extra fields .*\(stp\) .*trace\[0\]"),
        (
            lambda c: c["spec"].pop("arm"),
            r"complete record: .*missing @ \$\.spec\.arm",
        ),
        (
            lambda c: c["spec"].update(arms=1),
            r"complete record: .*\(arms\) @ \$\.spec",
        ),
        (lambda c: c["spec"].pop("digest"), "not a complete record: 'digest'"),
    ],
)
def test_a_reader_names_what_is_missing_or_unknown(change, message):
    content = json.loads(FULL.to_json())
    change(content)
    with pytest.raises(DataError, match=message):
        RunRecord.from_json(json.dumps(content))


@pytest.mark.parametrize("schema", ["1", "2", "4", '"two"', "true"])
def test_another_schema_says_what_to_do(schema):
    text = FULL.to_json().replace('"schema":3', f'"schema":{schema}')
    with pytest.raises(SchemaError, match=r"has schema .*, and this code reads schema"):
        RunRecord.from_json(text)

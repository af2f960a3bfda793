"""Records: what they hold and refuse, their JSON, and the digest of each."""

import json
import math

import pytest

from benchmarks.runs.codec import content_digest, joint_digest
from benchmarks.runs.record import AlteredError, RunRecord, SchemaError, TracePoint
from benchmarks.runs.spec import Unit
from benchmarks.runs.store import RunStore, read_jsonl, write_jsonl
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
        (lambda c: c.pop("trace"), "a record lacks trace"),
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


RECORD = make_record(
    make_spec(),
    [0.25, 0.5],
    data={"variant": "a9a", "digest": "ab12"},
    environment={"device": "cpu", "torch": "2.15.0"},
    seeds={"split": 7},
    seconds={"total": 1.5},
    trace=make_trace("f1", (0, 3, None, [0.1, 0.2])),
)
TEXT = RECORD.to_json()
ALTERED = {
    "a value": ("[0.25,0.5]", "[0.35,0.5]"),
    "a point of the trace": ("[0.1,0.2]", "[0.1,0.3]"),
    "a seed": ('"split":7', '"split":8'),
    "the environment": ("2.15.0", "2.14.0"),
    "the digest of the data": ("ab12", "ab13"),
    "the queries": ('"queries":0', '"queries":1'),
    "the seconds": ('"total":1.5', '"total":1.6'),
    "its digest": (f'"{json.loads(TEXT)["digest"][:4]}', '"zzzz'),
}


def test_whatever_character_is_changed_the_record_is_refused():
    for place, character in enumerate(TEXT):
        text = TEXT[:place] + chr(ord(character) ^ 1) + TEXT[place + 1 :]
        with pytest.raises(DataError):
            RunRecord.from_json(text)


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED)
def test_an_altered_record_is_named_refused_and_stays(tmp_path, change):
    store, lines = RunStore(tmp_path), tmp_path / "records.jsonl"
    path = store.put(RECORD)
    write_jsonl(lines, [make_record(make_spec("a")), RECORD])
    number = lines.read_text().splitlines().index(TEXT) + 1
    for file in (path, lines):
        file.write_text(file.read_text().replace(TEXT, TEXT.replace(*change, 1)))
        assert TEXT not in file.read_text()
    with pytest.raises(DataError, match=f"line {number}: the record was altered: "):
        read_jsonl(lines)
    with pytest.raises(AlteredError) as caught:
        store.get(RECORD.spec)
    told = str(caught.value)
    assert told.startswith(f"{path}: the record was altered: ")
    assert told.endswith("restore it, or remove it to make its run again")
    assert store.problems(["quick"]) == []
    (problem,) = store.problems(["quick", "table3"])
    assert problem.startswith(f"{path}: the record was altered: ")
    path.unlink()
    assert store.get(RECORD.spec) is None
    assert store.problems(["table3"]) == []


def test_the_digest_is_of_everything_and_the_outcome_of_what_runs_give_again():
    found = content_digest({"b": [1], "a": None})
    assert found == "98b8af4db27ca74550205512d9b8a9a0"
    assert json.loads(TEXT)["digest"] == RECORD.digest
    spec = make_spec()
    slow = make_record(spec, seconds={"total": 2.0}, environment={"device": "cuda"})
    other, fast = make_record(spec, seeds={"split": 8}), make_record(spec)
    assert len({slow.digest, other.digest, fast.digest}) == 3
    assert slow.outcome_digest == fast.outcome_digest != other.outcome_digest


def test_several_digests_have_one_in_any_order():
    assert joint_digest(["a", "b"]) == joint_digest(["b", "a"])
    assert joint_digest(["a", "b"]) != joint_digest(["a", "c"])
    assert joint_digest(["a"]) != joint_digest(["a", "a"])

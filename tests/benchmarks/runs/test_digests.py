"""A record holds the digest of its content: whatever is altered is refused."""

import json

import pytest

from benchmarks.runs.codec import canonical
from benchmarks.runs.digests import AlteredError, joint_digest, sealed
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import RunStore, read_jsonl, write_jsonl
from metricopt.errors import DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec, make_trace

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
    "its schema": ('"schema":3', '"schema":2'),
}


def test_whatever_character_is_changed_the_record_is_refused():
    for place, character in enumerate(TEXT):
        text = TEXT[:place] + chr(ord(character) ^ 1) + TEXT[place + 1 :]
        with pytest.raises(DataError):
            RunRecord.from_json(text)


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED)
def test_an_altered_line_is_named(tmp_path, change):
    path = tmp_path / "records.jsonl"
    write_jsonl(path, [make_record(make_spec("a")), RECORD])
    lines = path.read_text().splitlines()
    number = lines.index(TEXT) + 1
    lines[number - 1] = TEXT.replace(*change, 1)
    assert lines[number - 1] != TEXT
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=f"line {number}: the record was altered: "):
        read_jsonl(path)


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED)
def test_an_altered_stored_record_is_refused_and_stays(tmp_path, change):
    store = RunStore(tmp_path)
    path = store.put(RECORD)
    path.write_text(path.read_text().replace(*change, 1))
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


def test_a_record_without_digest_is_read_if_its_schema_had_none():
    content = json.loads(TEXT)
    del content["digest"]
    with pytest.raises(DataError, match="exactly its own fields; missing: digest"):
        RunRecord.from_json(canonical(content))
    old = canonical(content | {"schema": 2})
    assert RunRecord.from_json(old).to_json() == TEXT


def test_the_digest_is_of_everything_and_the_outcome_of_what_runs_give_again():
    assert sealed({"b": [1], "a": None})["digest"] == "98b8af4db27ca74550205512d9b8a9a0"
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

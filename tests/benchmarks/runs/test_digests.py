"""A record holds the digest of its content: whatever is altered is refused."""

import json

import pytest

from benchmarks.runs.codec import content_digest, joint_digest
from benchmarks.runs.record import AlteredError, RunRecord
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

"""The run store and the lines kept in git."""

import json
import multiprocessing

import pytest

from benchmarks.runs.record import RunRecord, SchemaError, SpecMismatchError
from benchmarks.runs.store import RunStore, gather, read_jsonl, write_jsonl
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec

SPEC = make_spec()
RECORD = make_record(SPEC)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_record_comes_back_and_stands_alone(tmp_path):
    store = RunStore(tmp_path)
    path = store.put(RECORD)
    assert store.get(SPEC) == RECORD
    assert names(path.parent) == ["record.json"]


def test_absent_record_is_none(tmp_path):
    assert RunStore(tmp_path / "nowhere").get(SPEC) is None


@pytest.mark.parametrize(
    ("before", "after", "error", "message"),
    [
        ("[0.5]", "[NaN]", DataError, "is damaged: .*NaN is no JSON number"),
        ('"seeds"', '"sedes"', DataError, "is damaged: .*lacks seeds"),
        ('"schema":3', '"schema":4', SchemaError, r"record\.json: .* has schema 4"),
        ('"b":1', '"b":2', SpecMismatchError, "was changed: .* written for the spec"),
    ],
)
def test_a_record_that_was_changed_is_told_and_stays(
    tmp_path, before, after, error, message
):
    store = RunStore(tmp_path)
    path = store.put(RECORD)
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(error, match=message):
        store.get(SPEC)
    assert names(path.parent) == ["record.json"]


def test_record_filed_under_another_spec_is_an_error(tmp_path):
    store = RunStore(tmp_path)
    path = store.path(SPEC)
    path.parent.mkdir(parents=True)
    path.write_text(make_record(make_spec("cma")).to_json())
    with pytest.raises(DataError, match=f"expected {SPEC.digest[:12]}"):
        store.get(SPEC)


def test_a_stale_record_stays_until_its_replacement_is_done(tmp_path):
    store = RunStore(tmp_path)
    missing = make_spec("cma")
    store.put(RECORD)
    assert not store.stale([SPEC])
    store.mark_stale([SPEC, missing])
    assert store.get(SPEC) == RECORD
    assert store.stale([SPEC])
    assert not store.stale([missing])
    # Another process, after the first one was killed, finds what is left to do.
    assert RunStore(tmp_path).stale([SPEC, missing]) == [SPEC]
    path = store.put(make_record(SPEC, [0.25]))
    assert store.get(SPEC).values("test") == [0.25]
    assert store.stale([SPEC, missing]) == []
    assert names(path.parent) == ["record.json"]


def test_a_stale_record_survives_a_failed_write(tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    store.put(RECORD)
    store.mark_stale([SPEC])

    def broken(path, content):
        raise OSError("no space left")

    monkeypatch.setattr("benchmarks.runs.store.write_atomically", broken)
    with pytest.raises(OSError, match="no space"):
        store.put(make_record(SPEC, [0.25]))
    assert store.get(SPEC) == RECORD
    assert store.stale([SPEC])


def test_unwritable_store_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for root in (file, file / "below"):
        with pytest.raises(ConfigError, match="must be a writable folder"):
            RunStore(root).ensure_writable()
    RunStore(tmp_path / "new").ensure_writable()
    assert list((tmp_path / "new").iterdir()) == []


def test_gather_sorts_and_skips_what_is_not_run(tmp_path):
    store = RunStore(tmp_path)
    specs = [make_spec(replicate=replicate) for replicate in (10, 2, 0)]
    for spec in specs[:2]:
        store.put(make_record(spec))
    found = gather(store, specs)
    assert [record.spec.replicate for record in found] == [2, 10]


def test_jsonl_is_canonical_whatever_the_order(tmp_path):
    records = [make_record(make_spec(row, n)) for row in ("b", "a") for n in (10, 9)]
    write_jsonl(tmp_path / "one", records)
    write_jsonl(tmp_path / "two", reversed(records))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    read = read_jsonl(tmp_path / "one")
    assert [(r.spec.row, r.spec.replicate) for r in read] == [
        ("a", 9),
        ("a", 10),
        ("b", 9),
        ("b", 10),
    ]
    line = (tmp_path / "one").read_text().splitlines()[0]
    assert line == json.dumps(
        json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def test_jsonl_errors_name_the_line(tmp_path):
    path = tmp_path / "records.jsonl"
    with pytest.raises(DataError, match="there is no such file"):
        read_jsonl(path)
    line = RECORD.to_json()
    path.write_text(f"{line}\n{line[:-5]}\n")
    with pytest.raises(
        DataError, match=r"records\.jsonl line 2: not a complete record"
    ):
        read_jsonl(path)
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(DataError, match="line 2: a second record of one run"):
        read_jsonl(path)


def _put_many(root, begun):
    begun.set()
    for _ in range(20):
        RunStore(root).put(RunRecord(SPEC, "done", test={"f1": [0.5] * 2000}))


def test_processes_may_share_a_store(tmp_path):
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    writer = context.Process(target=_put_many, args=(tmp_path, begun))
    writer.start()
    assert begun.wait(120)
    seen = set()
    while writer.is_alive():
        seen.add(RunStore(tmp_path).get(SPEC) is None)
    writer.join()
    assert writer.exitcode == 0
    assert RunStore(tmp_path).get(SPEC).values("test") == [0.5] * 2000

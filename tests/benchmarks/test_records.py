import json
import math
import multiprocessing
from pathlib import Path

import pytest

from benchmarks.records import (
    RunRecord,
    RunSpec,
    RunStore,
    SpecMismatchError,
    check_unique,
    gather,
    read_jsonl,
    write_jsonl,
)
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.report_cases import make_record

SPEC = RunSpec("table3", "smoke", "balanced", "cma-es", "a9a/f1", 2, {"b": 1, "a": [2]})


def test_digest_is_sha256_of_canonical_json():
    text = (
        '{"block":"balanced","column":"a9a/f1","experiment":"table3","replicate":2,'
        '"row":"cma-es","settings":{"a":[2],"b":1},"tier":"smoke"}'
    )
    import hashlib

    assert SPEC.digest == hashlib.sha256(text.encode()).hexdigest()


def test_digest_ignores_the_order_of_settings_and_tells_values_apart():
    names = ("table3", "smoke", "balanced", "cma-es", "a9a/f1", 2)
    assert RunSpec(*names, {"a": (2,), "b": 1}) == SPEC
    assert RunSpec(*names, {"a": (2,), "b": 1}).digest == SPEC.digest
    assert RunSpec(*names, {"a": [2], "b": 1.5}).digest != SPEC.digest


def test_settings_are_a_copy():
    settings = {"a": [1]}
    spec = RunSpec("x", "smoke", "b", "r", "c", 0, settings)
    before = spec.digest
    settings["a"].append(2)
    assert spec.digest == before


def test_folder_is_readable_and_unique():
    folder = f"table3/smoke/balanced-cma-es-a9a-f1-r2-{SPEC.digest[:8]}"
    assert SPEC.folder == Path(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tier": "../x"}, "tier must be letters"),
        ({"experiment": ""}, "experiment must be letters"),
        ({"row": ""}, "must not be empty"),
        ({"replicate": -1}, "replicate must be 0 or more, got -1"),
        ({"settings": {"a": math.nan}}, "expected values that JSON can hold"),
        ({"settings": {"a": object()}}, "expected values that JSON can hold"),
    ],
)
def test_bad_spec(fields, message):
    good = {
        "experiment": "x",
        "tier": "smoke",
        "block": "b",
        "row": "r",
        "column": "c",
        "replicate": 0,
    }
    with pytest.raises(ConfigError, match=message):
        RunSpec(**(good | fields))


def test_round_trip_keeps_every_field(tmp_path):
    entry = {"step": 0, "queries": 3, "observe": None, "test": [0.1, 0.2]}
    record = RunRecord(
        SPEC,
        "done",
        data={"variant": "a9a", "digest": "ab"},
        environment={"device": "cpu", "commit": "c0ffee"},
        seeds={"split": 2**63},
        queries=10,
        shared_queries=4,
        gradient_steps=50,
        seconds={"meta_train": 0.1 + 0.2},
        trace=[entry],
        observe=(0.1, 0.25),
        test=(1 / 3, 0.2),
        notes={"spearman": 0.9, "health_true": [0.1, 0.2]},
    )
    store = RunStore(tmp_path)
    path = store.put(record)
    assert store.get(SPEC) == record
    assert [item.name for item in path.parent.iterdir()] == ["record.json"]


def test_non_finite_numbers_become_null():
    record = make_record("cma", 0, [0.5, math.inf], notes={"spearman": [math.nan, 1]})
    assert record.test == [0.5, None]
    assert record.notes == {"spearman": [None, 1]}
    assert not record.finished
    assert RunRecord.from_json(record.to_json()) == record


def test_only_complete_done_records_are_finished():
    assert make_record("cma", 0, [0.5]).finished
    assert not make_record("cma", 0, []).finished
    assert not make_record("cma", 0, [0.5], status="diverged").finished


def test_bad_records():
    with pytest.raises(ConfigError, match="status must be one of done, diverged, fail"):
        make_record("cma", 0, [0.5], status="fine")
    with pytest.raises(ConfigError, match="a trace entry needs observe, queries, step"):
        make_record("cma", 0, [0.5], trace=[{"step": 1}])


def test_absent_record_is_none(tmp_path):
    assert RunStore(tmp_path / "nowhere").get(SPEC) is None


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_torn_record_counts_as_absent_and_is_moved_aside(tmp_path, keep):
    store = RunStore(tmp_path)
    path = store.put(RunRecord(SPEC, "done", test=[0.5]))
    torn = path.read_text()[:keep]
    path.write_text(torn)
    with pytest.warns(UserWarning, match=r"record\.json is torn and counts as not run"):
        assert store.get(SPEC) is None
    assert path.with_name("record.json.torn").read_text() == torn
    assert store.get(SPEC) is None
    store.put(RunRecord(SPEC, "done", test=[0.5]))
    assert store.get(SPEC).test == [0.5]


def test_record_with_nan_or_another_schema_is_torn(tmp_path):
    store = RunStore(tmp_path)
    path = store.put(RunRecord(SPEC, "done", test=[0.5]))
    text = path.read_text()
    path.write_text(text.replace("[0.5]", "[NaN]"))
    with pytest.warns(UserWarning, match="NaN is no JSON number"):
        assert store.get(SPEC) is None
    path.write_text(text.replace('"seeds"', '"sedes"'))
    with pytest.warns(UserWarning, match="missing or unknown: sedes, seeds"):
        assert store.get(SPEC) is None


def test_changed_spec_is_an_error_and_the_record_stays(tmp_path):
    store = RunStore(tmp_path)
    path = store.put(RunRecord(SPEC, "done", test=[0.5]))
    path.write_text(path.read_text().replace('"b":1', '"b":2'))
    with pytest.raises(SpecMismatchError, match="was changed: its spec has the digest"):
        store.get(SPEC)
    assert path.exists()


def test_record_filed_under_another_spec_is_an_error(tmp_path):
    store = RunStore(tmp_path)
    text = make_record("cma", 0, [0.5]).to_json()
    path = store.path(SPEC)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DataError, match=f"expected {SPEC.digest[:12]}"):
        store.get(SPEC)


def test_unwritable_store_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for root in (file, file / "below"):
        with pytest.raises(ConfigError, match="must be a writable folder"):
            RunStore(root).ensure_writable()
    RunStore(tmp_path / "new").ensure_writable()
    assert list((tmp_path / "new").iterdir()) == []


def test_duplicates_are_named():
    again = RunSpec("table3", "smoke", "balanced", "cma-es", "a9a/f1", 2, {"other": 1})
    place = "table3/smoke/balanced/cma-es/a9a/f1/2"
    for twice in ([SPEC, SPEC], [SPEC, again]):
        with pytest.raises(ConfigError, match=f"got two for {place}"):
            check_unique(twice)
    check_unique([SPEC, make_record("cma", 0, [0.5]).spec])


def test_gather_sorts_and_skips_what_is_not_run(tmp_path):
    store = RunStore(tmp_path)
    records = [make_record("cma", replicate, [0.5]) for replicate in (10, 2, 0)]
    for record in records[:2]:
        store.put(record)
    found = gather(store, [record.spec for record in records])
    assert [record.spec.replicate for record in found] == [2, 10]


def test_jsonl_is_canonical_whatever_the_order(tmp_path):
    records = [make_record(row, n, [0.5]) for row in ("b", "a") for n in (10, 9)]
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
    line = make_record("cma", 0, [0.5]).to_json()
    path.write_text(f"{line}\n{line[:-5]}\n")
    with pytest.raises(DataError, match=r"records\.jsonl line 2: no complete record"):
        read_jsonl(path)
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(DataError, match="line 2: a second record of one run"):
        read_jsonl(path)


def _put_many(root):
    for _ in range(20):
        RunStore(root).put(RunRecord(SPEC, "done", test=[0.5] * 2000))


def test_processes_may_share_a_store(tmp_path):
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=_put_many, args=(tmp_path,))
    writer.start()
    seen = set()
    while writer.is_alive():
        seen.add(RunStore(tmp_path).get(SPEC) is None)
    writer.join()
    assert writer.exitcode == 0
    assert RunStore(tmp_path).get(SPEC).test == [0.5] * 2000

"""Records of schema 1, read as those of today."""

import copy
import json

import pytest

from benchmarks.runs.record import RunRecord, TracePoint
from benchmarks.runs.spec import Arm, Spending, Unit
from benchmarks.runs.upgrade import SpecMismatchError, digest_of, upgrade
from metricopt.errors import DataError

ADAPTER = {"kind": "dynamic-bias", "size": 16}
FILM = {"kind": "film", "form": "direct", "sites": None, "size": None}
ARM = {
    "kind": "method",
    "name": "metricopt",
    "settings": {"recipe": {"tasks": 48}},
    "schedule": {},
    "from_theta": False,
}
TRACE = [
    {"step": 0, "queries": 100, "observe": None, "test": [0.1, 0.2]},
    {"step": 50, "queries": 105, "observe": [0.3, 0.4], "test": [0.5, 0.6]},
]


def old_record(*, adapter=ADAPTER, metric="f1", arm=(), **fields):
    """A record as schema 1 had it: 100 shared queries and 5 for each of two runs."""
    spec = old_spec(adapter, metric, ARM | dict(arm))
    return {
        "spec": spec | {"digest": digest_of(spec)},
        "status": "done",
        "message": "",
        "data": {"variant": "a9a"},
        "environment": {"commit": "abc"},
        "seeds": {"split": 3},
        "queries": 105,
        "shared_queries": 100,
        "gradient_steps": 50,
        "seconds": {"total": 1.5},
        "trace": TRACE,
        "observe": [0.3, 0.4],
        "test": [0.5, 0.6],
        "notes": {"step": 0.4},
    } | fields


def old_spec(adapter, metric, arm):
    settings = {
        "problem": {"dataset": "a9a"},
        "sampling": "natural",
        "backbone": {"epochs": 8},
        "adapter": adapter,
        "finetune": {"batch_size": 64},
        "revision": 1,
        "metric": metric,
        "arm": arm,
        "budget": {"queries": 200, "gradient_steps": 50},
        "meta_tests": 2,
        "diagnose": True,
    }
    return {
        "experiment": "table3",
        "tier": "local",
        "block": "natural",
        "row": "metricopt",
        "column": f"a9a/{metric}",
        "replicate": 3,
        "settings": settings,
    }


def read(content):
    return RunRecord.from_json(json.dumps(content))


def test_settings_move_to_their_typed_parts():
    spec = read(old_record()).spec
    assert spec.pipeline == Unit(
        "tabular",
        {
            "problem": {"dataset": "a9a"},
            "sampling": "natural",
            "backbone": {"epochs": 8},
            "adapter": {"size": 16},
            "finetune": {"batch_size": 64},
            "revision": 1,
        },
    )
    assert (spec.metric, spec.also) == (Unit("f1"), ())
    assert spec.arm == Arm("method", "metricopt", {"recipe": {"tasks": 48}})
    assert spec.budget == Spending(200, 50)
    assert (spec.meta_tests, spec.diagnose) == (2, True)
    cell = ("table3", "local", "natural", "metricopt", "a9a/f1", 3)
    assert spec.cell == cell


def test_film_becomes_the_pipeline_of_images():
    pipeline = read(old_record(adapter=FILM)).spec.pipeline
    assert pipeline.name == "images"
    assert pipeline.settings["adapter"] == {
        "form": "direct",
        "sites": None,
        "size": None,
    }


def test_values_stay_and_are_named_by_their_metric():
    record = read(old_record())
    assert record.observe == {"f1": [0.3, 0.4]}
    assert record.test == {"f1": [0.5, 0.6]}
    assert record.trace == (
        TracePoint(0, 100, {}, {"f1": [0.1, 0.2]}),
        TracePoint(50, 105, {"f1": [0.3, 0.4]}, {"f1": [0.5, 0.6]}),
    )
    assert (record.queries, record.shared_queries, record.gradient_steps) == (
        105,
        100,
        50,
    )
    assert record.notes == {"step": 0.4}
    assert (record.seconds, record.seeds) == ({"total": 1.5}, {"split": 3})


@pytest.mark.parametrize(
    ("metric", "note", "second"),
    [
        ("jaccard", "test_legacy", "jaccard-legacy"),
        ("aucpr", "test_logits", "aucpr-macro-logits"),
    ],
)
def test_second_metrics_leave_the_notes(metric, note, second):
    record = read(old_record(metric=metric, notes={note: [0.7, 0.8], "step": 0.4}))
    assert record.spec.also == (Unit(second),)
    assert record.test == {metric: [0.5, 0.6], second: [0.7, 0.8]}
    assert record.notes == {"step": 0.4}


def test_a_failed_run_has_no_values():
    record = read(old_record(status="failed", test=[], observe=[], trace=[]))
    assert (record.test, record.observe, record.trace) == ({}, {}, ())
    assert not record.finished


@pytest.mark.parametrize(
    ("fields", "queried"),
    [
        ({}, {"observe": 100 + 2 * 5}),
        ({"arm": {"kind": "oracle"}}, {"test": 110}),
        ({"queries": 0, "shared_queries": 0}, {}),
        # The four candidate steps of the method are tried three times on observe.
        (
            {"arm": {"settings": {"recipe": {"queries_on": "train"}}}},
            {"train": 98, "observe": 12},
        ),
        (
            {"arm": {"settings": {"recipe": {"queries_on": "train"}, "steps": [1, 2]}}},
            {"train": 104, "observe": 6},
        ),
        (
            {"notes": {"batch_queries": 107, "observe_queries": 3}},
            {"train": 107, "observe": 3},
        ),
    ],
)
def test_queries_are_told_by_their_split(fields, queried):
    assert read(old_record(**fields)).queried == queried


def test_upgrading_changes_nothing_it_is_given_and_happens_once():
    old = old_record(metric="jaccard", notes={"test_legacy": [0.7, 0.8]})
    before = copy.deepcopy(old)
    new = upgrade(old)
    assert old == before
    assert upgrade(new) == new
    assert json.loads(read(old).to_json()) == new


def test_a_spec_that_was_changed_is_an_error():
    old = old_record()
    old["spec"]["settings"]["meta_tests"] = 3
    with pytest.raises(SpecMismatchError, match="but holds the spec"):
        read(old)


def test_an_incomplete_old_record_names_the_field():
    old = old_record()
    del old["trace"]
    with pytest.raises(DataError, match="not a complete record: 'trace'"):
        read(old)
    with pytest.raises(DataError, match="unknown: more"):
        read(old_record(more=1))

"""The kill test of `finetune` sees lost, repeated and changed queries."""

import json

import pytest

from benchmarks.execution.finetune_kill_test import (
    BEGIN,
    METHODS,
    append,
    asked_again,
    differences,
    sections,
)
from benchmarks.execution.kill_test import Sandbox
from metricopt.errors import MetricOptError

ASKED = ["a", "b", "c", "d"]


def test_only_a_query_in_flight_may_be_asked_again():
    assert asked_again(ASKED, [ASKED]) == 0
    assert asked_again(ASKED, [["a", "b"], [], ["c", "d"], []]) == 0
    assert asked_again(ASKED, [["a", "b"], ["b", "c"], ["c"], ["d"]]) == 2


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([["a", "b", "c"], ["b", "c", "d"]], "other questions follow query 3"),
        ([["a", "b"], ["d"]], "other questions follow query 2"),
        ([["a", "x"], ["c", "d"]], "other questions follow query 0"),
        ([["a", "b"], ["c"]], "3 queries were made instead of 4"),
        ([ASKED, ["d", "e"]], "other questions follow query 3"),
    ],
)
def test_anything_else_is_told(calls, told):
    with pytest.raises(MetricOptError, match=told):
        asked_again(ASKED, calls)


def _write(folder, calls, value=0.5):
    site = Sandbox(folder)
    site.results.mkdir(parents=True)
    for method in METHODS:
        for questions in calls:
            append(site.results / f"{method}.log", BEGIN)
            for question in questions:
                append(site.results / f"{method}.log", question)
    found = {method: {"phi": [value], "summary": "better"} for method in METHODS}
    (site.results / "found.json").write_text(json.dumps(found))
    return site


def test_results_and_logs_of_every_method_are_compared(tmp_path, capsys):
    calm = _write(tmp_path / "calm", [ASKED])
    log = calm.results / "auto.log"
    assert list(sections(log)) == [ASKED]
    killed = _write(tmp_path / "killed", [["a", "b"], ["b", "c", "d"]])
    assert differences(calm, killed) == []
    assert "asked again: 2\n" in capsys.readouterr().out  # one for each method
    other = _write(tmp_path / "other", [["a"], ["c", "d"]], value=0.25)
    assert differences(calm, other) == [
        "auto: phi differs from that of the undisturbed call",
        "auto: other questions follow query 1",
        "cma-es: phi differs from that of the undisturbed call",
        "cma-es: other questions follow query 1",
    ]

"""The kill test of finetune sees lost and changed queries; killed calls go on."""

import json
import multiprocessing
import random
from pathlib import Path

import pytest

from metricopt.errors import MetricOptError
from tests.benchmarks.execution.finetune_kills import (
    BEGIN,
    METHODS,
    append,
    asked_again,
    differences,
    sections,
)
from tests.benchmarks.execution.kills import Sandbox
from tests.robustness.checkpoint_calls import call, logged_call, told

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


def test_three_kills_change_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """The process of a call is killed at random moments; see also the kill test."""
    context = multiprocessing.get_context("forkserver")
    slow = "gpytorch", "cma", "metricopt.on_outputs.no_harm"  # to import
    context.set_forkserver_preload([logged_call.__module__, *slow])
    queries_file = tmp_path / "queries.txt"
    result, log = queries_file.with_suffix(".json"), queries_file.with_suffix(".log")
    log.touch()
    moments, kills = random.Random(3), 0
    while not result.exists():
        before = log.stat().st_size
        process = context.Process(target=logged_call, args=(queries_file, log, result))
        process.start()
        goal = before + 6 * moments.randint(1, 9)
        while process.is_alive() and (kills == 3 or log.stat().st_size < goal):
            process.join(0.001 * moments.randint(1, 20))
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
    assert kills == 3
    undisturbed = call(queries=30)
    assert json.loads(result.read_text()) == told(undisturbed)
    asked = len(log.read_text().splitlines())
    assert undisturbed.spent.queries <= asked <= undisturbed.spent.queries + kills

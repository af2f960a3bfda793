"""Calls of `finetune` in processes of their own, killed at random moments."""

import json
import multiprocessing
import random
from pathlib import Path

from tests.robustness.checkpoint_calls import call, logged_call, told


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

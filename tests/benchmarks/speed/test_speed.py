"""The speed script measures what it says; how fast that is, no test may ask."""

import pytest
import torch

from benchmarks.speed import __main__ as speed
from benchmarks.speed import timing
from benchmarks.speed.measurement import Measurement
from benchmarks.speed.timing import Workload

TINY = Workload("digits", tasks=32, steps=2, rows=3, repeats=1)


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory, monkeypatch):
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("METRICOPT_CACHE", str(base / "speed-cache"))
    monkeypatch.setenv("METRICOPT_DATA", str(base / "no-data"))
    torch.set_num_threads(1)


def test_ratios_and_rates_are_positive():
    task = timing.make_task("digits")
    rate, share = timing.meta_training_rate(task, TINY.tasks)
    assert rate > 0 and 0 < share < 1
    assert timing.lockstep_gain(task, TINY) > 0
    for cached in (False, True):
        ratio, seconds = timing.guided_ratio(TINY, cached=cached)
        assert ratio > 0 and seconds > 0
    assert min(timing.peak_megabytes()) >= 0


def test_the_rate_counts_the_tasks_done_when_time_is_up(monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 0.0)
    task = timing.make_task("digits")
    # No block is begun, so that none is counted.
    assert timing.meta_training_rate(task, 320)[0] == 0


def test_digits_replace_missing_data(capsys, monkeypatch):
    lines = [
        Measurement("steps", "3 x", ">= 2 x", True),
        Measurement("memory", "12 MB"),
        Measurement("tasks", "1 tasks/s", ">= 2", False),
    ]
    monkeypatch.setattr(speed, "measure", lambda workload: lines)
    assert speed.main() == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("a9a is not there")
    assert "meta-training on digits, best of 3" in printed[1]
    assert [line.split() for line in printed[2:6]] == [
        ["what", "measured", "target"],
        ["steps", "3", "x", ">=", "2", "x", "met"],
        ["memory", "12", "MB"],
        ["tasks", "1", "tasks/s", ">=", "2", "missed"],
    ]

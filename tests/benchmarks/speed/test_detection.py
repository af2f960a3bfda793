"""The speed script of detection: contestants agree, a difference is found out."""

import pytest
import torch

from benchmarks.speed import detection
from benchmarks.speed.detection import Problem
from metricopt.errors import MetricOptError

TINY = Problem(images=30, classes=4, alarms=3)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_the_problem_is_neither_solved_nor_hopeless():
    found, truths = TINY.draw()
    assert 0.1 < detection.ours(TINY, found, truths) < 0.9
    again, _ = TINY.draw()
    assert torch.equal(again.box, found.box)


@pytest.mark.parametrize("name", ["pycocotools", "torchmetrics"])
def test_every_contestant_finds_the_same(name):
    pytest.importorskip(name)
    drawn = TINY.draw()
    expected = detection.ours(TINY, *drawn)
    found = detection.CONTESTANTS[name](TINY, *drawn)
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_difference_is_an_error(monkeypatch):
    contestants = {"ours": detection.ours, "wrong": lambda *_: 0.25}
    monkeypatch.setattr(detection, "CONTESTANTS", contestants)
    with pytest.raises(MetricOptError, match=r"by 'ours', 0.250000 by 'wrong'"):
        detection.evaluators(TINY, 1)


def test_the_table(capsys):
    given = ["--images", "20", "--observed", "2", "--detector", "tiny"]
    assert detection.main([*given, "--repeats", "1", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert "20 images, 20 classes" in said
    assert "detections: torchmetrics" in said
    assert "query of tiny, 2 images of 256 x 192" in said

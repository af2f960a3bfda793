"""Tuning beside other tools: there is room, and the table says who took how long."""

import torch

from benchmarks.speed import tuning


def test_there_is_something_to_gain():
    torch.set_num_threads(1)
    outputs, labels = tuning.drawn(1_000, 10)
    untouched = tuning._validation(outputs, labels).values(outputs[None]).item()
    assert tuning.ours(outputs, labels) > untouched + 0.01


def test_the_table(capsys, monkeypatch):
    monkeypatch.setattr(tuning, "REPEATS", 1)
    torch.set_num_threads(1)
    assert tuning.main(["--examples", "300"]) == 0
    said = capsys.readouterr().out
    assert "300 x 10 outputs: metricopt.tune" in said
    assert "TunedThresholdClassifierCV over ours" in said

"""The speed script of few-shot learners: its table, at a tiny size."""

import re

from benchmarks.speed import few_shot


def test_the_table(capsys, monkeypatch):
    monkeypatch.setattr(few_shot, "CHANNELS", 2)
    monkeypatch.setattr(few_shot, "REPEATS", 1)
    assert few_shot.main(["--dataset", "drawn-classes", "--ways", "2"]) == 0
    said = capsys.readouterr().out
    rates = re.findall(r"(\S+), (.+?) +(\d+\.\d) tasks/s", said)
    assert [rate[:2] for rate in rates] == [
        (name, way)
        for name in ("maml", "maml-first-order", "mirror-descent")
        for way in ("one by one", "at once by vmap")
    ]
    found = {rate[:2]: float(rate[2]) for rate in rates}
    for way in ("one by one", "at once by vmap"):
        (ratio,) = re.findall(rf"mirror descent over MAML, {way} +(\d+\.\d\d) x", said)
        expected = found["maml", way] / found["mirror-descent", way]
        assert abs(float(ratio) / expected - 1) < 0.05
    assert said.count("MAML in full over first order") == 2

"""The speed script of learned optimizers: its table, at a tiny size."""

import re

import pytest

from benchmarks.speed import learned_optimizers
from metricopt.errors import ConfigError


def test_the_table_has_all_lines(shared_cache, monkeypatch, capsys):
    monkeypatch.setattr(learned_optimizers, "STEPS", 2)
    monkeypatch.setattr(learned_optimizers, "REPEATS", 1)
    asked = ["--table", "table3", "--tier", "smoke", "--column", "digit-8/f1"]
    assert learned_optimizers.main(asked) == 0
    title, _, *lines = capsys.readouterr().out.splitlines()
    assert "table3 digit-8/f1, d = 16, 2 steps" in title
    measured = dict(re.split(r"\s{2,}", line) for line in lines)
    rates = [measured.pop(f"runs {how}") for how in ("in lock-step", "one by one")]
    assert all(float(rate.removesuffix(" runs/s")) > 0 for rate in rates)
    assert measured.pop("a step of Adam, 10 rows").endswith(" ms")
    assert list(measured) == [
        "lock-step over one by one",
        "a step of MetricOpt's MLP over Adam's",
        "a step of MLP (2019) over Adam's",
        "a step of LSTM (2016) over Adam's",
    ]
    assert all(float(ratio.removesuffix(" x")) > 0 for ratio in measured.values())


def test_an_unknown_table_is_refused():
    with pytest.raises(ConfigError, match="unknown experiment 'table33'"):
        learned_optimizers.main(["--table", "table33"])

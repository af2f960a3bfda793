"""The speed script of photographs: its table, at a tiny size."""

import pytest

from benchmarks.speed import photographs
from benchmarks.speed.photographs import Work
from metricopt.errors import MetricOptError

TINY = Work("nasnet-a-tiny", 32, 24, 4)


def test_the_table(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    given = ["--network", TINY.network, "--side", "32", "--images", "24"]
    assert photographs.main([*given, "--batch-size", "4"]) == 0
    said = capsys.readouterr().out
    assert "training of nasnet-a-tiny, 32 x 32 pixels" in said
    assert "photographs decoded when needed" in said
    assert "x the need" in said
    assert "by one process" in said


def test_a_process_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    with pytest.raises(MetricOptError, match="an epoch by 2 processes"):
        photographs.by_processes(Work("nasnet-a-tiny", 32, 24, 5), 2)

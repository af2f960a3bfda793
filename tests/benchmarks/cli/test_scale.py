"""The prediction of tier paper on many GPUs, and the page that shows it."""

import pytest

from benchmarks.cli import scale
from benchmarks.cli.scale import GPUS, Scale, main
from metricopt.errors import ConfigError
from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "scale.md").read_text()


def test_the_page_shows_what_the_script_prints(capsys):
    assert main(["fig3"]) == 0
    heading, rule, line = capsys.readouterr().out.splitlines()
    assert f"{heading}\n{rule}\n" in PAGE
    assert line in PAGE
    assert line.split("|")[1:3] == [" fig3 ", " 360 "]
    lines = [text for text in PAGE.splitlines() if text.startswith("| ")]
    assert {f"| {name} |" for name in scale.EXPERIMENTS} <= {
        f"| {text.split('|')[1].strip()} |" for text in lines
    }


def test_runs_without_images_use_all_cores_and_take_time_by_steps_and_queries():
    found = Scale("fig3")
    assert not found.on_gpu and found.workers(8) == 128
    assert found.trainings == {}
    seconds = found.seconds()
    assert seconds.keys() == {spec.digest for spec in found.specs}
    same = [s for s in found.specs if (s.row, s.column) == ("untouched", "a9a/mcr")]
    assert len({seconds[spec.digest] for spec in same}) <= 1
    # Twice the measured seconds are twice the prediction.
    whole = sum(seconds.values())
    found.records = found.records * 1
    for record in found.records:
        object.__setattr__(record, "seconds", {"total": 2 * record.total_seconds})
    assert sum(found.seconds().values()) == pytest.approx(2 * whole)


def test_more_gpus_never_take_longer_and_an_unknown_table_is_refused():
    cells = Scale("fig3").line("fig3")[-len(GPUS) :]
    hours = [float(cell.split()[0]) for cell in cells]
    assert hours == sorted(hours, reverse=True)
    with pytest.raises(ConfigError, match="unknown experiment 'tabel'"):
        Scale("tabel")

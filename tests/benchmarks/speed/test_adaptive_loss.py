"""The speed script of ALA: its table, at a tiny size."""

import pytest

from benchmarks.problems.images.settings import ImageProblem
from benchmarks.speed import adaptive_loss
from benchmarks.speed.adaptive_loss import Work


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_the_table(capsys):
    work = Work("digit-net", ImageProblem("digits", "full"), steps=8, repeats=1)
    assert adaptive_loss.main(work) == 0
    said = capsys.readouterr().out
    assert "plain training of digit-net" in said
    assert "ALA, period 200, metric measured 4 times" in said
    assert "ALA, period 20, measured once" in said
    assert said.count(" x (") == 2

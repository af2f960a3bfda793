"""Our exact metrics and those of libraries: the same figures, else an error."""

import re

import pytest
import torch

from benchmarks.speed import libraries
from metricopt.errors import MetricOptError
from tests.metricopt.metrics.test_neighbours import naive


def test_the_problems_are_neither_solved_nor_hopeless():
    torch.set_num_threads(1)
    boxes, (embeddings, labels) = (
        libraries.drawn_boxes(30),
        libraries.drawn_embeddings(120),
    )
    assert 0.1 < libraries.ap50(*boxes) < 0.9
    assert set(torch.bincount(labels).tolist()) == {libraries.PER_CLASS}
    expected = float(naive(embeddings, labels)[1].mean())
    assert 0.1 < expected < 0.9
    assert libraries.map_at_r(embeddings, labels) == pytest.approx(expected)


def test_the_table(capsys):
    torch.set_num_threads(1)
    assert libraries.main(["--images", "20", "--embeddings", "100"]) == 0
    said = capsys.readouterr().out
    assert "AP50 of 20 images, here" in said and "MAP@R of 100 embeddings" in said
    assert len(re.findall(r"the library over ours +\d+\.\d x", said)) == 2


def test_a_difference_is_an_error():
    with pytest.raises(MetricOptError, match=r"AP is 0\.500000 here, 0\.250000 there"):
        libraries.compared("AP", lambda: 0.5, lambda: 0.25)

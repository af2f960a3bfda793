"""The script that times fine-tuning of embeddings runs, on a tiny network."""

import re

from benchmarks.speed.embeddings import measure
from benchmarks.speed.measurement import as_table


def test_every_line_has_a_ratio_and_both_times():
    lines = measure("tiny", side=32)
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"\d+\.\d x \(\d+\.\d ms, \d+\.\d ms\)", line.found)
    assert "cached against whole" in as_table(lines)

"""Readers: sizes, sites, and what is refused."""

import pytest
import torch

from benchmarks.networks.reading.contract import build_reader
from metricopt.errors import ConfigError


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_scores_are_of_both_ends(name):
    network = build_reader(name, 20, 12, seed=1).eval()
    inputs = torch.zeros(2, 3, 12, dtype=torch.int64)
    inputs[:, 0, :7], inputs[:, 1, :7] = 5, 2
    with torch.no_grad():
        scores = network(inputs)
    assert scores.shape == (2, 2, 12) and scores.isfinite().all()
    assert torch.equal(scores[0], scores[1])
    assert isinstance(dict(network.named_modules())["norm"], torch.nn.LayerNorm)
    assert network.sites == ("norm",)
    again = build_reader(name, 20, 12, seed=1).state_dict()
    assert all(torch.equal(again[k], v) for k, v in network.state_dict().items())


def test_what_is_no_reader_is_refused():
    with pytest.raises(ConfigError, match="3 characters and 4 places or more, got 2"):
        build_reader("tiny", 2, 12, seed=0)
    with pytest.raises(ConfigError, match="unknown reader"):
        build_reader("macbert-tiny", 20, 12, seed=0)

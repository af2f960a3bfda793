"""Readers: sizes, sites, and what is refused."""

import pytest
import torch

from benchmarks.networks.reading.contract import build_reader
from metricopt.errors import ConfigError


@pytest.mark.parametrize("name", ["tiny-convolutions", "small"])
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
        build_reader("tiny-convolutions", 2, 12, seed=0)
    with pytest.raises(ConfigError, match="unknown reader"):
        build_reader("macbert-tiny", 20, 12, seed=0)


def test_a_place_knows_question_and_paragraph_but_nothing_behind_them():
    network = build_reader("small", 20, 12, seed=1).eval()
    for name, weight in network.named_parameters():
        if name.endswith("norm.bias"):  # as in a trained network
            torch.nn.init.constant_(weight, 0.5)
    inputs = torch.zeros(1, 3, 9, dtype=torch.int64)
    inputs[0, 0] = torch.arange(3, 12)
    inputs[0, 1] = torch.tensor([1] * 4 + [2] * 5)
    long = torch.nn.functional.pad(inputs, (0, 30))
    with torch.no_grad():
        scores = network(inputs)
        torch.testing.assert_close(network(long)[..., :9], scores)
        # Alone and beside a longer question alike.
        beside = inputs.clone()
        beside[0, 1, :8] = 1
        both = network(torch.cat([inputs, beside]))
        torch.testing.assert_close(both[:1], scores)
        # All of the paragraph knows the question.
        other = inputs.clone()
        other[0, 0, 1] = 15
        changed = (network(other) - scores).abs().amax((0, 1))
        assert (changed[4:] > 1e-4).all()

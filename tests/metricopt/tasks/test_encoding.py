"""Encoding: features computed once in chunks, or inputs read when they are needed."""

import pytest
import torch

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.tasks.encoding import encode
from metricopt.tasks.sampling import Split
from tests.metricopt import adapter_networks as networks
from tests.metricopt.drawn import draw, labels
from tests.metricopt.watched import watch

TRAIN = Split(draw(40, 6), labels(40))


@pytest.fixture
def adapter():
    return DynamicBias(networks.mlp(), size=5)


@pytest.mark.parametrize("limit", [("EXAMPLES_ENCODED", 7), ("NUMBERS_ENCODED", 42)])
def test_encoding_in_chunks_changes_nothing(adapter, monkeypatch, limit):
    whole = encode(adapter, TRAIN).features
    chunks = watch(monkeypatch, adapter, "encode")
    monkeypatch.setattr(f"metricopt.tasks.encoding.{limit[0]}", limit[1])
    parts = encode(adapter, TRAIN).features
    assert [len(inputs) for (inputs,) in chunks] == [7, 7, 7, 7, 7, 5]
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other)
        assert not one.requires_grad

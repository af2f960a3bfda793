"""Weights as they are kept: half the size, and identified."""

import torch

from benchmarks.problems.pretrained.weights import half_weights, weights_digest


def test_half_weights_round_matrices_alone():
    state = {"w": torch.tensor([[1.0001]]), "b": torch.tensor([1.0001])}
    found = half_weights(state)
    assert found["w"].dtype == torch.float16 and found["b"].dtype == torch.float32
    assert found["b"].item() == state["b"].item()


def test_the_digest_sees_every_weight():
    state = {"w": torch.zeros(2, 2), "b": torch.zeros(1)}
    other = {"w": torch.tensor([[0.0, 0.0], [0.0, 1e-7]]), "b": torch.zeros(1)}
    assert weights_digest(state) == weights_digest(dict(reversed(state.items())))
    assert weights_digest(state) != weights_digest(other)

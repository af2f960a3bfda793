"""Kronecker layers against literal Kronecker products, and their shapes."""

import pytest
import torch

from metricopt.geometry.kronecker import (
    KroneckerDecoder,
    KroneckerEncoder,
    KroneckerLayer,
    modes,
    shrunk,
)
from tests.metricopt.geometry.drawn_maps import point, seeded


@pytest.mark.parametrize(
    ("before", "after"), [((3,), (2,)), ((4, 3), (2, 5)), ((2, 3, 4), (3, 1, 2))]
)
def test_a_layer_is_the_literal_kronecker_product(before, after):
    layer = KroneckerLayer(before, after, seeded()).double()
    layer.bias.data = point(size=layer.bias.numel()).view(after)
    matrix = torch.ones(1, 1).double()
    for each in layer.matrices:
        matrix = torch.kron(matrix, each)
    x = point(1, size=torch.Size(before).numel())
    expected = (matrix @ x).view(after) + layer.bias
    torch.testing.assert_close(layer(x.view(before)), expected)


def test_matrices_are_drawn_within_kaimings_bounds_and_biases_are_zero():
    layer = KroneckerLayer((400, 9), (200, 4), seeded())
    for matrix, size in zip(layer.matrices, (400, 9), strict=True):
        bound = size**-0.5
        assert 0.9 * bound < matrix.abs().max() <= bound
        assert abs(matrix.mean()) < 0.2 * bound
    assert not layer.bias.any()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 64, 3, 3), [(64, 64, 9), (32, 32, 4), (16, 16, 2), (8, 8, 1)]),
        ((64, 3, 3, 3), [(64, 3, 9), (32, 1, 4), (16, 1, 2), (8, 1, 1)]),
        ((5, 1600), [(5, 1600), (2, 800), (1, 400), (1, 200)]),
        ((64,), [(64,), (32,), (16,), (8,)]),
        ((), [(1,), (1,), (1,), (1,)]),
        ((2, 2, 2, 2, 2), [(2, 2, 8), (1, 1, 4), (1, 1, 2), (1, 1, 1)]),
    ],
)
def test_every_layer_halves_every_mode_down_to_one(shape, expected):
    assert modes(shape) == expected[0]
    assert shrunk(shape, (2, 2, 2)) == expected


def test_relus_stand_where_the_authors_have_them():
    """After every layer of the encoder; before and between those of the decoder."""
    encoder = KroneckerEncoder((8,), (2, 2), seeded()).double()
    decoder = KroneckerDecoder((8,), (2, 2), "first-mode-zero", seeded(1)).double()
    for head in (decoder.a, decoder.shift):
        head.matrices[0].data.normal_(generator=seeded(2))
    x, u = point(size=8), torch.tensor([0.7, -0.4]).double()
    hidden = [encoder.layers[0].matrices[0] @ x]
    hidden.append(encoder.layers[1].matrices[0] @ hidden[0].relu())
    assert (hidden[1] < 0).any()
    torch.testing.assert_close(encoder(x), hidden[1].relu())
    assert (u < 0).any()
    grown = (decoder.layers[0].matrices[0] @ u.relu()).relu()
    a, shift = decoder(u)
    torch.testing.assert_close(a, decoder.a.matrices[0] @ grown)
    torch.testing.assert_close(shift, decoder.shift.matrices[0] @ grown)
    assert (torch.cat([a, shift]) < 0).any()


@pytest.mark.parametrize("heads", ["first-mode-zero", "all-modes-zero"])
def test_heads_are_zero_whatever_the_input_is(heads):
    decoder = KroneckerDecoder((6, 4), (2,), heads, seeded())
    for output in decoder(point(size=6).float()):
        assert not output.any()
    zero = [not matrix.any() for matrix in decoder.a.matrices]
    assert zero == [True, heads == "all-modes-zero"]

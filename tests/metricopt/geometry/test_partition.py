"""Blocks of consecutive tensors, pieces of a vector, matrices shared in a block."""

import pytest
import torch

from metricopt.errors import ConfigError, ShapeError
from metricopt.geometry import (
    BlockDiagonal,
    BlockIAF,
    Dense,
    ParameterShapes,
    consecutive_blocks,
    layer_blocks,
    mirror_descent,
    released_block_iaf,
    vector_partition,
    vector_shapes,
)
from tests.metricopt.geometry.drawn_maps import point


def test_blocks_are_four_consecutive_tensors_and_a_remainder():
    shapes = ParameterShapes({name: (2,) for name in "abcdef"})
    assert consecutive_blocks(shapes) == (("a", "b", "c", "d"), ("e", "f"))
    assert consecutive_blocks(shapes, 2) == (("a", "b"), ("c", "d"), ("e", "f"))
    assert consecutive_blocks(shapes, 9) == (tuple("abcdef"),)
    assert released_block_iaf(shapes).blocks == consecutive_blocks(shapes)


def test_blocks_of_layers_begin_with_a_matrix():
    norm, dense = torch.nn.BatchNorm2d(2), torch.nn.Linear(8, 3)
    first = torch.nn.Conv2d(1, 2, 3, bias=False)
    network = torch.nn.Sequential(first, norm, torch.nn.Flatten(), dense)
    shapes = ParameterShapes(dict(network.named_parameters()))
    layers = ("0.weight", "1.weight", "1.bias"), ("3.weight", "3.bias")
    assert layer_blocks(shapes) == layers == BlockIAF(shapes).blocks
    assert layer_blocks(ParameterShapes({"a": (2,), "b": (3,)})) == (("a", "b"),)


@pytest.mark.parametrize(
    ("tensors", "message"), [(0, "tensors >= 1, got"), (1.5, "a whole number, got 1.5")]
)
def test_blocks_without_tensors_are_refused(tensors, message):
    with pytest.raises(ConfigError, match=message):
        consecutive_blocks(ParameterShapes({"a": (1,)}), tensors)


def test_shapes_are_those_of_a_network_in_the_order_of_the_flat_vector():
    network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    named = dict(network.named_parameters())
    shapes = ParameterShapes(named)
    assert shapes.by_name == {n: tuple(w.shape) for n, w in named.items()}
    assert shapes.size == 11
    flat = shapes.flat(named)
    expected = torch.nn.utils.parameters_to_vector(network.parameters())
    assert torch.equal(flat, expected)
    for name, tensor in shapes.named(flat).items():
        assert torch.equal(tensor, named[name])


def test_pieces_of_a_vector_are_blocks_of_their_own():
    shapes = vector_shapes([4, 4, 2])
    assert (shapes.size, shapes.names) == (10, ("0", "1", "2"))
    g = BlockIAF(shapes, [["2"], ["0", "1"]]).double()
    assert torch.equal(g(point(size=10)), point(size=10))
    with pytest.raises(ConfigError, match="got 1 without any"):
        vector_shapes([4, 0])


def test_tensors_of_a_block_share_the_matrix_over_outputs():
    """As in a network whose layer computes T (w x + b), with descent on w and b."""
    g = BlockDiagonal({"w": (3, 2), "b": (3,)}, [("w", "b")]).double()
    (matrix,) = g.parameters()
    matrix.data = point(1, size=9).view(3, 3)
    x, y = point(2, size=2), point(3, size=3)
    w, b = point(4, size=6).view(3, 2), point(5, size=3)

    def loss(phi):
        return (phi["w"] @ x + phi["b"] - y).cosh().log().sum()

    def inside(raw):
        return loss({name: matrix @ value for name, value in raw.items()})

    raw = {"w": w, "b": b}
    start = g.inverse({name: matrix @ value for name, value in raw.items()})
    path = mirror_descent(g, start, loss, steps=3, rate=0.1)
    for _ in range(3):
        gradients = torch.func.grad(inside)(raw)
        raw = {name: raw[name] - 0.1 * gradients[name] for name in raw}
    for name, value in raw.items():
        torch.testing.assert_close(path.phi[-1][name], matrix @ value)


def test_tensors_of_other_numbers_of_outputs_share_no_matrix():
    with pytest.raises(ShapeError, match="as many outputs, got w 3, b 2"):
        BlockDiagonal({"w": (3, 2), "b": (2,)}, [("w", "b")])
    with pytest.raises(ConfigError, match="exactly once; 'b' is in no block"):
        BlockDiagonal({"w": (3, 2), "b": (2,)}, [("w",)])


def test_places_of_a_vector_are_shapes_and_blocks():
    places = [[slice(2, 4), slice(5, 6)], [slice(0, 2), slice(4, 5)]]
    shapes, blocks = vector_partition(places)
    assert shapes.by_name == {"0": (2,), "1": (2,), "2": (1,), "3": (1,)}
    assert blocks == (("1", "3"), ("0", "2"))


@pytest.mark.parametrize(
    ("places", "got"),
    [
        ([], "none"),
        ([[slice(1, 3)]], "1 to 3"),
        ([[slice(0, 2)], [slice(3, 4)]], "0 to 2, 3 to 4"),
        ([[slice(0, 2)], [slice(1, 4)]], "0 to 2, 1 to 4"),
    ],
)
def test_places_that_do_not_cover_a_vector_are_refused(places, got):
    with pytest.raises(ConfigError, match=f"exactly once, .*got {got}$"):
        vector_partition(places)


def test_the_conditioners_of_128_parameters_in_four_blocks_have_14_320_weights():
    places = [[slice(32 * i, 32 * (i + 1))] for i in range(4)]
    found = BlockIAF(*vector_partition(places), conditioner=Dense(32, 16))
    assert sum(weight.numel() for weight in found.parameters()) == 14_320

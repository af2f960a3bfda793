"""BlockIAF: what its Jacobian is, what the lemma says and does not, what it learns."""

import math

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.geometry import (
    BlockIAF,
    Dense,
    Kronecker,
    released_block_iaf,
    vector_shapes,
)
from metricopt.geometry.scale import log_scale, scale
from tests.metricopt.geometry.drawn_maps import (
    BLOCKS,
    SHAPES,
    built,
    drawn,
    point,
    seeded,
)

IAF = ["released blockIAF", "blockIAF, kronecker", "blockIAF, clamped"]


def coordinates(g):
    """Where each block's coordinates stand in the flat vector."""
    index = g.shapes.pieces(torch.arange(g.shapes.size))
    return [torch.cat([index[name] for name in block]) for block in g.blocks]


@pytest.mark.parametrize("name", IAF)
def test_the_jacobian_is_block_triangular_with_diagonal_blocks(name):
    g, z = drawn(name, by=0.6), point()
    jacobian = torch.func.jacrev(g)(z)
    blocks = coordinates(g)
    for i, rows in enumerate(blocks):
        own = jacobian[rows][:, rows]
        assert torch.equal(own, torch.diag(own.diagonal()))
        assert (own.diagonal() > 0).all()
        for later in blocks[i + 1 :]:
            assert not jacobian[rows][:, later].any()
        for before in blocks[:i]:
            assert jacobian[rows][:, before].any()
    logs = jacobian.diagonal().log().sum()
    assert (g.log_det(z) - logs).abs() < 1e-10


@pytest.mark.parametrize("name", IAF)
def test_outputs_increase_in_their_own_coordinates(name):
    g = drawn(name)
    blocks = coordinates(g)
    for i, rows in enumerate(blocks):
        z = point(i)
        for place in rows.tolist():
            higher = z.clone()
            higher[place] += 0.5
            change = g(higher) - g(z)
            assert change[place] > 0
            assert not any(change[before].any() for before in blocks[:i])


def test_it_is_not_monotone_as_an_operator():
    """The counter-example to the lemma: g(z) = (z_1, z_2 + 3 z_1)."""
    relu = Kronecker((1,))
    g = BlockIAF(vector_shapes([1, 1]), [["0"], ["1"]], conditioner=relu).double()
    with torch.no_grad():
        for weight in g.parameters():
            weight.zero_()
        # The encoder adds 10 so that its ReLU passes the whole range looked at.
        g.encoders[0].encoders[0].layers[0].matrices[0].fill_(1)
        g.encoders[0].encoders[0].layers[0].bias.fill_(10)
        g.decoders[0].dense.weight.fill_(1)
        g.decoders[0].decoders[0].shift.matrices[0].fill_(3)
        g.decoders[0].decoders[0].shift.bias.fill_(-30)
    z, step = torch.tensor([0.4, 2.0]).double(), torch.tensor([1.0, -1.0]).double()
    torch.testing.assert_close(g(z), torch.stack([z[0], z[1] + 3 * z[0]]))
    jacobian = torch.func.jacrev(g)(z)
    symmetric = torch.linalg.eigvalsh((jacobian + jacobian.T) / 2)
    assert symmetric.tolist() == pytest.approx([-0.5, 2.5])
    assert (g(z + step) - g(z)).dot(step).item() == pytest.approx(-1)


def test_it_is_lipschitz_on_a_box_and_steeper_on_larger_ones():
    """With a bounded scale, too: one factor grows with z."""
    g, generator = drawn("blockIAF, dense", by=0.5), seeded(3)
    steepest = []
    for radius in (1.0, 10.0, 100.0, 1000.0):
        drawn_at = torch.rand(60, g.shapes.size, generator=generator).double()
        z = radius * (2 * drawn_at - 1)
        step = 1e-4 * torch.randn(z.shape, generator=generator).double()
        step[0] = g_steepest(g, z[0]) * 1e-4
        norms = torch.func.vmap(torch.func.jacrev(g))(z)
        largest = torch.linalg.matrix_norm(norms, 2).max()
        moves = torch.func.vmap(g)(z + step) - torch.func.vmap(g)(z)
        ratios = moves.norm(dim=1) / step.norm(dim=1)
        assert ratios.max() <= 1.05 * largest
        steepest.append(ratios.max().item())
    assert steepest == sorted(steepest)
    assert steepest[-1] > 3 * steepest[0]


def g_steepest(g, z):
    """The direction in which g is steepest at z."""
    return torch.linalg.svd(torch.func.jacrev(g)(z)).Vh[0].detach()


@pytest.mark.parametrize("kind", ["exp", "2-sigmoid", "clamped-exp"])
def test_scales_are_one_at_zero_positive_and_bounded_if_they_say_so(kind):
    a = torch.linspace(-60, 60, 121, dtype=torch.float64)
    factors = scale(kind, a)
    assert factors[60] == 1
    assert (factors > 0).all()
    assert (factors.diff() >= 0).all()
    bound = {"exp": math.exp(60), "2-sigmoid": 2, "clamped-exp": math.exp(3)}[kind]
    assert float(factors.max()) == pytest.approx(bound)
    torch.testing.assert_close(log_scale(kind, a), factors.log())


def convolutions(ways, channels, features):
    """Shapes of four convolutions with batch norm, and a linear layer."""
    shapes = {}
    for layer, inputs in enumerate((channels, 64, 64, 64)):
        shapes[f"conv_{layer}.weight"] = (64, inputs, 3, 3)
        shapes |= {f"{n}_{layer}": (64,) for n in ("bias", "norm", "shift")}
    return shapes | {"head.weight": (ways, features), "head.bias": (ways,)}


@pytest.mark.parametrize(
    ("net", "size", "sizes", "count"),
    [
        ((5, 3, 1600), 121_093, [1920, 37_056, 37_056, 37_056, 8005], 3_447_535),
        ((5, 1, 64), 112_261, [768, 37_056, 37_056, 37_056, 325], 415_661),
        ((20, 1, 64), 113_236, [768, 37_056, 37_056, 37_056, 1300], 421_490),
    ],
    ids=["miniImageNet", "Omniglot 5-way", "Omniglot 20-way"],
)
def test_the_networks_of_the_paper_have_the_counted_weights(net, size, sizes, count):
    shapes = convolutions(*net)
    for g in (released_block_iaf(shapes), BlockIAF(shapes)):
        assert g.shapes.size == size
        assert [sum(g.shapes.sizes(block)) for block in g.blocks] == sizes
        assert sum(weight.numel() for weight in g.parameters()) == count


def test_dense_maps_have_the_counted_weights():
    sine = {"w1": (40, 1), "b1": (40,), "w2": (40, 40), "b2": (40,)}
    sine |= {"w3": (1, 40), "b3": (1,)}
    pairs = [("w1", "b1"), ("w2", "b2"), ("w3", "b3")]
    small = BlockIAF(sine, pairs)
    film = BlockIAF(
        vector_shapes([32] * 4), [["0"], ["1"], ["2"], ["3"]], conditioner=Dense(32, 16)
    )
    counts = [sum(w.numel() for w in g.parameters()) for g in (small, film)]
    assert counts == [171_458, 14_320]


def test_the_inverse_of_a_sine_network_is_near_in_single_precision():
    sizes = {"w1": (40, 1), "b1": (40,), "w2": (40, 40), "b2": (40,), "w3": (1, 40)}
    g = BlockIAF(sizes, [("w1", "b1"), ("w2", "b2"), ("w3",)], generator=seeded())
    with torch.no_grad():
        for seed, weight in enumerate(g.parameters()):
            weight += 0.1 * point(seed, torch.float32, weight.numel()).view_as(weight)
    z = point(3, torch.float32, g.shapes.size)
    assert (g(z) - z).abs().max() > 0.1
    assert (g.inverse(g(z)) - z).abs().max() < 1e-5


def moved_by_descent(g):
    """Names of the weights that some meta-steps move."""
    before = {n: w.detach().clone() for n, w in g.named_parameters()}
    optimizer = torch.optim.Adam(g.parameters(), lr=1e-2)
    for seed in range(20):
        optimizer.zero_grad()
        z = point(seed, size=g.shapes.size)
        (g(z) - z.flip(0) ** 2).square().sum().backward()
        optimizer.step()
    return {n for n, w in g.named_parameters() if not torch.equal(before[n], w)}


def test_released_heads_of_two_modes_never_move_and_mended_ones_do():
    shapes = {"w": (32, 16), "b": (32,), "v": (16, 32), "c": (32,)}
    pairs = [("w", "b"), ("v", "c")]
    released = released_block_iaf(shapes, pairs, generator=seeded()).double()
    mended = BlockIAF(
        shapes, pairs, conditioner=Kronecker(), generator=seeded()
    ).double()
    names = {name for name, _ in released.named_parameters()}
    of_v = "decoders.0.decoders.0."
    biases = {f"{of_v}{head}.bias" for head in ("a", "shift")}
    stuck = {name for name in names if name.startswith(of_v)} - biases
    assert len(stuck) == 10
    assert moved_by_descent(released) == names - stuck
    assert moved_by_descent(mended) == names


def test_one_block_is_a_scale_and_a_shift():
    g = BlockIAF({"w": (3, 2)}, scale="exp").double()
    assert {n: w.numel() for n, w in g.named_parameters()} == {
        "first_a": 6,
        "first_shift": 6,
    }
    g.first_a.data, g.first_shift.data = point(1, size=6), point(2, size=6)
    z = point(3, size=6)
    torch.testing.assert_close(g(z), z * g.first_a.exp() + g.first_shift)


def test_the_same_seed_draws_the_same_map():
    first, again, other = (BlockIAF(SHAPES, generator=seeded(s)) for s in (1, 1, 2))
    for (_, a), (_, b) in zip(
        first.named_parameters(), again.named_parameters(), strict=True
    ):
        assert torch.equal(a, b)
    weights = [g.encoders[0][0].weight for g in (first, other)]
    assert not torch.equal(*weights)


def test_weights_are_saved_and_loaded():
    g = drawn("blockIAF, kronecker")
    empty = built("blockIAF, kronecker")
    assert not torch.equal(empty(point()), g(point()))
    empty.load_state_dict(g.state_dict())
    assert torch.equal(empty(point()), g(point()))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (BLOCKS[:2], "every parameter exactly once; 'w.2' is in no block"),
        ((*BLOCKS, ("b",)), "every parameter exactly once; 'b' is in 2 places"),
        ((*BLOCKS[:2], ("w.2", "w.2")), "'w.2' is in 2 places"),
        ((*BLOCKS, ("d",)), "blocks name 'd'; the parameters are w_1.weight, b"),
        ((*BLOCKS, ()), "every block needs a parameter; block 3 has none"),
        ((), "'w_1.weight' is in no block"),
        ("bcs", "a sequence of sequences of parameter names"),
        (("b", "c"), "a sequence of sequences of parameter names"),
    ],
)
def test_partitions_that_do_not_cover_every_parameter_once_are_refused(blocks, message):
    with pytest.raises(ConfigError, match=message):
        BlockIAF(SHAPES, blocks)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BlockIAF(SHAPES, scale="sigmoid"),
            "scale must be one of 'exp', '2-si",
        ),
        (lambda: Kronecker(heads="zero"), "heads must be one of 'first-mode-zero'"),
        (lambda: Kronecker(()), "at least one factor, got none"),
        (lambda: Kronecker((2, 0)), "factors >= 1, got factors=0"),
        (lambda: Kronecker((2.5,)), "factors must be a whole number, got 2.5"),
        (lambda: Dense(hidden=0), "hidden >= 1, got hidden=0"),
        (lambda: Dense(embedding=0), "embedding >= 1, got embedding=0"),
        (lambda: BlockIAF({}), "at least one named tensor with an element, got none"),
        (lambda: BlockIAF({"e": (0, 3)}), "got e without any"),
        (lambda: BlockIAF(torch.zeros(3)), "must be a mapping of named tensors"),
        (
            lambda: BlockIAF({"w": 3}),
            "parameter 'w' must be a tensor or a shape, got 3",
        ),
        (
            lambda: BlockIAF({"w": (1.5,)}),
            "size of 'w' must be a whole number, got 1.5",
        ),
        (
            lambda: BlockIAF(SHAPES, conditioner="dense"),
            r"conditioner must be Kronecker\(...\) or Dense\(...\), got 'dense'",
        ),
        (lambda: BlockIAF(SHAPES, conditioner=Dense), r"pass Dense\(...\)"),
    ],
)
def test_settings_out_of_range_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()

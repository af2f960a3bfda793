"""Eq. (5): inputs, network and step of MetricOpt's optimizer."""

import math
import re
from itertools import pairwise

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.learned_optimizers import MetricOptMLP
from metricopt.learned_optimizers.contract import Seen, kind_of
from metricopt.learned_optimizers.features import normalised
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS, PAPER_INPUTS
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.learned_optimizers.quadratics import Constant

T, SIZE = 20, 5


def optimizer(inputs=ALL_INPUTS, **settings):
    made = MetricOptMLP(T, inputs, **settings).double()
    with torch.no_grad():  # a head that moves something
        made.network[-1].weight.normal_(generator=seeded(3))
    return made


def path(learned, steps=4, rows=3, scale=1.0, order=None):
    """Everything that steps saw, remembered and made of random gradients."""
    phi, found = draw(rows, SIZE).double(), []
    state = learned.start(phi if order is None else phi[:, order])
    for step in range(steps):
        gradient = scale * draw(rows, SIZE, seed=step + 1).double()
        loss, cost = torch.rand(2, rows, generator=seeded(step), dtype=torch.float64)
        parts = [phi, gradient]
        if order is not None:
            parts = [part[:, order] for part in parts]
        seen = Seen(*parts, scale * loss, cost, step)
        move, after = learned(seen, state)
        found.append((seen, state, move))
        state = after
    return found


def test_c4_weights():
    assert MetricOptMLP(T).size == 1_378
    assert MetricOptMLP(T).inputs == PAPER_INPUTS
    assert MetricOptMLP(T, ALL_INPUTS).size == 1_442


def test_b8_normalised_by_hand():
    found = normalised(torch.tensor([3.0, 4.0]), 0.0)
    assert found.tolist() == pytest.approx([0.848528, 1.131371], abs=1e-6)
    zero = torch.zeros(2, requires_grad=True)
    value = normalised(zero, 1e-24)
    assert torch.autograd.grad(value.sum(), zero)[0].isfinite().all()


def test_b6_coordinates_are_permuted_with_their_moves():
    learned, order = optimizer(), [3, 0, 4, 1, 2]
    pairs = zip(path(learned), path(learned, order=order), strict=True)
    for (_, _, move), (_, _, permuted) in pairs:
        torch.testing.assert_close(permuted, move[:, order], rtol=0, atol=1e-15)
        assert move.abs().max() > 0.01


def test_b6_a_loss_ten_times_as_large_moves_the_same():
    learned = optimizer(PAPER_INPUTS[:5])
    pairs = zip(path(learned), path(learned, scale=10.0), strict=True)
    for (_, _, move), (_, _, scaled) in pairs:
        torch.testing.assert_close(scaled, move, rtol=1e-6, atol=1e-6)
    sized = optimizer(("gradient size",))
    assert not torch.allclose(path(sized)[0][2], path(sized, scale=10.0)[0][2])


def test_a_step_equals_the_formulas_coordinate_by_coordinate():
    learned = optimizer(scale=0.2, exponent=0.5)
    mean_gradient = [[0.0] * SIZE for _ in range(3)]
    means = [None] * 3
    first = [None] * 3
    for seen, _, move in path(learned):
        for row in range(3):
            gradient, phi = seen.gradient[row].tolist(), seen.phi[row].tolist()
            loss, cost = seen.loss[row].item(), seen.cost[row].item()
            first[row] = first[row] or loss
            means[row] = means[row] or (loss, cost)
            mean = [
                0.9 * m + 0.1 * g
                for m, g in zip(mean_gradient[row], gradient, strict=True)
            ]
            mean_gradient[row] = mean
            square = sum(g * g for g in gradient) / SIZE
            mean_square = sum(m * m for m in mean) / SIZE
            phi_square = sum(p * p for p in phi) / SIZE
            loss_mean, cost_mean = means[row]
            for i in range(SIZE):
                column = [
                    gradient[i] / math.sqrt(square),
                    mean[i] / math.sqrt(mean_square),
                    phi[i] / math.sqrt(phi_square + 1e-5),
                    min(loss / first[row], 10),
                    max(-1, min(1, (loss - loss_mean) / abs(loss_mean))),
                    cost,
                    max(-1, min(1, (cost - cost_mean) / abs(cost_mean))),
                    math.log10(math.sqrt(square)) / 4,
                    math.tanh(2 * seen.step / T - 1),
                ]
                u, m = learned.network(torch.tensor(column).double()).tolist()
                step = 0.2 * u * math.exp(max(-5, min(5, 0.5 * m)))
                expected = max(-1, min(1, step))
                assert move[row, i].item() == pytest.approx(expected, rel=1e-5)
            means[row] = (0.9 * loss_mean + 0.1 * loss, 0.9 * cost_mean + 0.1 * cost)


def test_c5_a_head_of_zeros_moves_nothing():
    learned = optimizer()
    with torch.no_grad():
        for weight in learned.network[-1].parameters():
            weight.zero_()
    assert all((move == 0).all() for _, _, move in path(learned))


def test_any_size_and_a_step_of_at_most_one():
    learned = optimizer(scale=100.0)
    for shape in ((1,), (2, 3, 7)):
        phi = draw(*shape).double()
        scalar = torch.ones_like(phi[..., 0])
        seen = Seen(phi, 2 * phi, scalar, scalar, 0)
        move, _ = learned(seen, learned.start(phi))
        assert move.shape == phi.shape
        assert move.abs().max() == 1


def test_a_seed_makes_the_same_weights_and_leaves_others_alone():
    torch.manual_seed(1)
    one = MetricOptMLP(T, seed=4)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.rand(1) == drawn
    other, third = MetricOptMLP(T, seed=4), MetricOptMLP(T, seed=5)
    assert torch.equal(one.network[0].weight, other.network[0].weight)
    assert not torch.equal(one.network[0].weight, third.network[0].weight)


def test_what_an_optimizer_sees():
    assert MetricOptMLP(T).sees_metric
    assert MetricOptMLP(T).sees_loss
    plain = MetricOptMLP(T, ("gradient", "time"))
    assert not plain.sees_metric
    assert not plain.sees_loss
    assert not any(map(plain.observes, range(T)))


@pytest.mark.parametrize(
    ("steps", "count"), [(1, 1), (2, 2), (4, 3), (50, 3), (100, 5), (400, 20)]
)
def test_the_metric_is_observed_at_a_share_of_the_steps_from_first_to_last(
    steps, count
):
    observed = list(filter(MetricOptMLP(steps).observes, range(3 * steps)))
    within = [step for step in observed if step < steps]
    assert (within[0], within[-1], len(within)) == (0, steps - 1, count)
    if count > 1:
        gaps = [after - before for before, after in pairwise(observed)]
        assert max(gaps) - min(gaps) <= 1


def test_kinds_of_optimizers_have_names():
    plain = MetricOptMLP(T, ("gradient", "time"))
    assert kind_of(plain) == "metricopt-mlp"
    with pytest.raises(ConfigError, match="Constant must be registered before"):
        kind_of(Constant(0.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MetricOptMLP(0),
            "needs horizon >= 1, got horizon=0",
        ),
        (lambda: MetricOptMLP(1.5), "horizon must be a whole number, got 1.5"),
        (lambda: MetricOptMLP(T, ()), "inputs must be different names of 'gradient'"),
        (lambda: MetricOptMLP(T, ("phi", "phi")), "got 'phi', 'phi'"),
        (lambda: MetricOptMLP(T, ("hessian",)), "'time', got 'hessian'"),
        (lambda: MetricOptMLP(T, scale=0.0), "scale > 0, got scale=0.0"),
        (lambda: MetricOptMLP(T, exponent=-1.0), "exponent >= 0, got exponent=-1.0"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make()

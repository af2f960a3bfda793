"""The MLP optimizer of 2019: inputs, weights, steps by hand."""

import math

import pytest
import torch

from baselines.optimizers.mlp import DECAYS, TIMES, MLPOptimizer, time_features
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import (
    Objective,
    OptimizerTraining,
    mean_objective,
    train_optimizer,
)
from metricopt.learned_optimizers.contract import LEARNED, Seen
from tests.metricopt.drawn import draw
from tests.metricopt.learned_optimizers.quadratics import Bare


def path(optimizer, steps=3, order=None):
    phi = draw(2, 4).double()
    chosen = list(range(4)) if order is None else order
    state, found = optimizer.start(phi[:, chosen]), []
    for step in range(steps):
        gradient = draw(2, 4, seed=step + 1).double()
        scalar = torch.zeros(2).double()
        seen = Seen(phi[:, chosen], gradient[:, chosen], scalar, scalar, step)
        move, state = optimizer(seen, state)
        found.append((phi, gradient, move))
    return found


def test_c4_weights():
    optimizer = MLPOptimizer(50)
    assert optimizer.size == 1_762
    assert len(optimizer.inputs) == 19
    assert LEARNED.get("mlp") is MLPOptimizer


def test_b9_time_features_by_hand():
    found = time_features(10)[:5].tolist()
    assert found == pytest.approx([1.0, 0.9814, 0, -0.5828, -0.7163], abs=1e-4)


def outputs(optimizer, direction, magnitude):
    """Make the network say the same of every coordinate."""
    head = optimizer.network[-1]
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_(torch.tensor([direction, magnitude]))


def test_b7_the_multiplier_by_hand():
    optimizer = MLPOptimizer(50).double()
    outputs(optimizer, 2.0, 5.0)
    move = path(optimizer)[0][2]
    assert move.flatten().tolist() == pytest.approx([-0.00201003] * 8, abs=1e-8)


def test_c5_a_head_of_zeros_moves_nothing():
    optimizer = MLPOptimizer(50).double()
    outputs(optimizer, 0.0, 0.0)
    assert all((move == 0).all() for _, _, move in path(optimizer))


def test_b6_coordinates_are_permuted_with_their_moves():
    optimizer, order = MLPOptimizer(50, scale=1.0).double(), [2, 0, 3, 1]
    pairs = zip(path(optimizer), path(optimizer, order=order), strict=True)
    for (_, _, move), (_, _, permuted) in pairs:
        torch.testing.assert_close(permuted, move[:, order], rtol=0, atol=1e-15)


def test_a_step_equals_the_formulas_coordinate_by_coordinate():
    optimizer = MLPOptimizer(50, scale=0.1, exponent=0.5).double()
    means = [[[0.0] * 4 for _ in DECAYS] for _ in range(2)]

    def scaled(values):
        root = math.sqrt(1e-5 + sum(v * v for v in values) / 4)
        return [v / root for v in values]

    for step, (phi, gradient, move) in enumerate(path(optimizer)):
        for row in range(2):
            slope = gradient[row].tolist()
            for decay, mean in zip(DECAYS, means[row], strict=True):
                for i in range(4):
                    mean[i] = decay * mean[i] + (1 - decay) * slope[i]
            columns = [scaled(each) for each in (slope, phi[row].tolist(), *means[row])]
            times = [math.tanh(step / x - 1) for x in TIMES]
            for i in range(4):
                column = [each[i] for each in columns] + times
                u, m = optimizer.network(torch.tensor(column).double()).tolist()
                expected = -0.1 * u * math.exp(0.5 * m)
                assert move[row, i].item() == pytest.approx(expected, rel=1e-4)


def test_it_learns():
    optimizer, tasks = MLPOptimizer(20, scale=0.1, exponent=1.0), Bare(range(500, 516))
    objective = Objective(metric_weight=0.0)
    asked = OptimizerTraining(iterations=60, objective=objective, rate=3e-3)
    before = mean_objective(optimizer, tasks, objective)
    train_optimizer(optimizer, Bare, asked)
    assert mean_objective(optimizer, tasks, objective) < before - 0.3


@pytest.mark.parametrize(
    "changes", [{"scale": 0.0}, {"exponent": -1.0}, {"horizon": 0}]
)
def test_what_is_refused(changes):
    with pytest.raises(ConfigError, match="got"):
        MLPOptimizer(**{"horizon": 5} | changes)

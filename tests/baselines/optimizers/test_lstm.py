"""The LSTM optimizer: inputs, weights, a naive loop, and the published training."""

import math

import pytest
import torch

from baselines.optimizers.lstm import LSTMOptimizer, log_and_sign, published_training
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import (
    LearnedStepper,
    load_optimizer,
    save_optimizer,
    train_optimizer,
)
from metricopt.learned_optimizers.contract import Seen
from metricopt.learned_optimizers.meta_training import mean_objective
from tests.metricopt.learned_optimizers.quadratics import Bare


def seen(gradient, step=0):
    scalar = torch.zeros_like(gradient[..., 0])
    return Seen(torch.zeros_like(gradient), gradient, scalar, scalar, step)


def test_c1_inputs_by_hand():
    gradient = torch.tensor([1.0, -1e-3, 1e-6, 0.0], dtype=torch.float64)
    found = log_and_sign(gradient, 10.0)
    expected = [(0, 1), (-0.690776, -1), (-1, 0.0220265), (-1, 0)]
    assert found.flatten().tolist() == pytest.approx(
        [each for pair in expected for each in pair], abs=1e-6
    )


def test_c4_weights():
    assert LSTMOptimizer().size == 5_301


def cell(layer, x, h, c):
    """One step of an LSTM for one coordinate, gate by gate."""

    def gate(number, unit):
        row = number * 20 + unit
        total = layer.bias_ih[row].item() + layer.bias_hh[row].item()
        total += sum(
            w * v for w, v in zip(layer.weight_ih[row].tolist(), x, strict=True)
        )
        return total + sum(
            w * v for w, v in zip(layer.weight_hh[row].tolist(), h, strict=True)
        )

    def sigmoid(value):
        return 1 / (1 + math.exp(-value))

    hidden, memory = [], []
    for unit in range(20):
        i, f, g, o = (gate(number, unit) for number in range(4))
        memory.append(sigmoid(f) * c[unit] + sigmoid(i) * math.tanh(g))
        hidden.append(sigmoid(o) * math.tanh(memory[-1]))
    return hidden, memory


def test_a_step_equals_a_naive_loop():
    optimizer = LSTMOptimizer(scale=0.5).double()
    generator = torch.Generator().manual_seed(0)
    gradients = 10 ** torch.randn(3, 2, 2, generator=generator, dtype=torch.float64)
    state = optimizer.start(gradients[0])
    kept = {(r, i): [[0.0] * 20] * 4 for r in range(2) for i in range(2)}
    for step, gradient in enumerate(gradients):
        move, state = optimizer(seen(gradient, step), state)
        for (row, i), (h1, c1, h2, c2) in kept.items():
            value = gradient[row, i].item()
            x = [math.log(value) / 10, 1.0]
            h1, c1 = cell(optimizer.first, x, h1, c1)
            h2, c2 = cell(optimizer.second, h1, h2, c2)
            kept[row, i] = [h1, c1, h2, c2]
            head = optimizer.head.bias.item()
            head += sum(
                w * h
                for w, h in zip(optimizer.head.weight[0].tolist(), h2, strict=True)
            )
            assert move[row, i].item() == pytest.approx(0.5 * head, rel=1e-9)
    assert move.unique().numel() == 4


def test_c5_a_head_of_zeros_moves_nothing():
    optimizer = LSTMOptimizer()
    torch.nn.init.zeros_(optimizer.head.weight)
    torch.nn.init.zeros_(optimizer.head.bias)
    gradient = torch.randn(2, 5)
    move, _ = optimizer(seen(gradient), optimizer.start(gradient))
    assert (move == 0).all()


def test_the_published_training_learns():
    asked = published_training(iterations=30)
    assert (asked.estimator, asked.window, asked.order) == (
        "through-steps",
        20,
        "first",
    )
    optimizer, tasks = LSTMOptimizer(40, scale=0.1), Bare(range(500, 516))
    before = mean_objective(optimizer, tasks, asked.objective)
    found = train_optimizer(optimizer, Bare, asked)
    assert len(found.gradient_norms) == 2 * 30
    assert mean_objective(optimizer, tasks, asked.objective) < 0.5 * before


def test_it_stands_where_sgd_stood_and_comes_back_from_a_file(tmp_path):
    path = tmp_path / "lstm.safetensors"
    optimizer = LSTMOptimizer(20, p=5.0, seed=2)
    save_optimizer(path, optimizer, tasks="none")
    paths = []
    for each in (optimizer, load_optimizer(path).optimizer):
        phi = torch.nn.Parameter(torch.ones(6))
        stepper = LearnedStepper([phi], each)
        for _ in range(3):
            stepper.zero_grad()
            phi.square().sum().backward()
            stepper.step()
        paths.append(phi.detach())
    assert torch.equal(*paths)
    assert (paths[0] != 1).all()


@pytest.mark.parametrize("changes", [{"p": 0.0}, {"scale": -1.0}, {"horizon": 0}])
def test_what_is_refused(changes):
    with pytest.raises(ConfigError, match="got"):
        LSTMOptimizer(**changes)

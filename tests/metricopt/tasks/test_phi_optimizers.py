"""Optimizers of phi by name: what they are, and how a user adds one."""

import pytest
import torch

from baselines.optimizers.powersign import PowerSign
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import LearnedStepper, MetricOptMLP
from metricopt.methods.controls import LossOnly
from metricopt.methods.result import Budget
from metricopt.tasks.descent import loss_optimizer, run
from metricopt.tasks.phi_optimizers import PHI_OPTIMIZERS, PhiOptimizer
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

STEPS = 6


@pytest.fixture
def named(monkeypatch):
    """Register optimizers for the time of a test."""

    def register(name, make):
        units = {name: PHI_OPTIMIZERS.get(name) for name in PHI_OPTIMIZERS}
        monkeypatch.setattr(PHI_OPTIMIZERS, "_units", units)
        own = type("Own", (PhiOptimizer,), {"make": staticmethod(make)})
        PHI_OPTIMIZERS.register(name)(own)

    return register


def test_known_ones_are_those_of_torch_with_a_rate():
    phi = torch.nn.Parameter(torch.zeros(1, 3))
    made = {n: PHI_OPTIMIZERS.get(n).make(phi, 0.2, STEPS) for n in PHI_OPTIMIZERS}
    assert isinstance(made["adam"], torch.optim.Adam)
    assert made["sgd"].defaults["momentum"] == 0
    assert made["momentum"].defaults["momentum"] == 0.9
    assert isinstance(made["powersign"], PowerSign)
    assert made["powersign"].defaults["decay_steps"] == STEPS
    assert all(each.param_groups[0]["lr"] == 0.2 for each in made.values())
    assert [n for n in made if PHI_OPTIMIZERS.get(n).own_length] == ["adam"]


def test_a_registered_one_is_known_to_every_method(named):
    def backwards(phi, rate, steps):
        return torch.optim.SGD([phi], lr=rate, maximize=True)

    named("backwards", backwards)
    task, budget = QuadraticTask(noise=0.0), Budget(0, STEPS)
    up = LossOnly("backwards", rate=0.1).run(task, budget, seeded(), rows=2)
    down = LossOnly("sgd", rate=0.1).run(task, budget, seeded(), rows=2)
    far, near = ((each.phi - task.loss_minimum).norm() for each in (up, down))
    assert far > 2 * near
    found = MetricOpt(optimizer="backwards").run(task, Budget(60, STEPS), seeded())
    assert found.phi.isfinite().all()
    with pytest.raises(ConfigError, match="named 'backwards' is registered already"):
        PHI_OPTIMIZERS.register("backwards")(PhiOptimizer)
    with pytest.raises(
        ConfigError, match=r"unknown optimizer of phi 'backward'; .*mean"
    ):
        LossOnly("backward", rate=0.1).run(task, budget, seeded())


def test_a_learned_one_stands_where_sgd_stood(named):
    learned = MetricOptMLP(STEPS, ("gradient", "loss change"))
    named("learned", lambda phi, rate, steps: LearnedStepper([phi], learned))
    start = torch.zeros(2, 6)
    task = QuadraticTask(noise=0.0)
    path, losses = run(task, loss_optimizer("learned", 1.0), start, STEPS, seeded())
    phi = torch.nn.Parameter(start.clone())
    stepper = LearnedStepper([phi], learned)
    for step in range(STEPS):
        assert torch.equal(path[:, step], phi.detach())
        stepper.zero_grad()
        loss = task.losses(phi, seeded())
        assert torch.equal(losses[:, step], loss.detach())
        loss.sum().backward()
        stepper.see(loss=loss)
        stepper.step()
    assert torch.equal(path[:, STEPS], phi.detach())
    assert not torch.equal(path[:, STEPS], start)

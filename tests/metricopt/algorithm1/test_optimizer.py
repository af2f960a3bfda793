"""The guided step as a wrapper of any torch optimizer."""

import pytest
import torch

from metricopt.algorithm1.optimizer import (
    Guidance,
    MetricOptimizer,
    descent_estimate,
    sample_perturbations,
    subspace_basis,
)
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.quadratic_task import SIZE, QuadraticTask

KINDS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.5}),
    "adam": (torch.optim.Adam, {"lr": 0.1}),
    "adamw": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1}),
}


class Bowl(ValueFunction):
    """Predicts the squared distance from a known phi."""

    def __init__(self, centre):
        super().__init__(len(centre))
        self.centre = centre

    def forward(self, phi):
        return (phi - self.centre).square().sum(1)


@pytest.fixture
def value_function():
    return Bowl(draw(SIZE, seed=9))


def wrapped(phi, value_function, kind="sgd", **guidance):
    make, settings = KINDS[kind]
    return MetricOptimizer(
        make([phi], **settings),
        value_function,
        guidance=Guidance(**guidance),
        generator=seeded(5),
    )


def stepped(phi, optimizer, gradients):
    for gradient in gradients:
        phi.grad = gradient.clone()
        optimizer.step()
    return phi.detach()


def expected_path(start, value_function, kind, gradients):
    """The published loop, in plain torch: where phi goes, and the loss alone went."""
    make, settings = KINDS[kind]
    generator, guidance = seeded(5), Guidance()
    torch.randn(len(start), 1, generator=generator)  # the jitter of the step lengths
    phi = torch.nn.Parameter(start.clone())
    shadow = torch.nn.Parameter(start.clone())
    guided, alone = make([phi], **settings), make([shadow], **settings)
    history = []
    for gradient in gradients:
        shadow.data.copy_(phi.detach())
        shadow.grad = gradient.clone()
        alone.step()
        history = [*history, shadow.detach() - phi.detach()][-guidance.history :]
        basis = subspace_basis(torch.stack(history, dim=1))
        delta = sample_perturbations(
            basis, guidance.pairs, guidance.variance, generator
        )
        centre = phi.detach()
        phi.grad = descent_estimate(value_function, centre, delta, guidance.variance)
        guided.step()
    return phi.detach()


@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_the_published_loop(kind, value_function):
    start, gradients = draw(3, SIZE), draw(5, 3, SIZE, seed=1)
    phi = torch.nn.Parameter(start.clone())
    found = stepped(phi, wrapped(phi, value_function, kind), gradients)
    assert torch.equal(found, expected_path(start, value_function, kind, gradients))


def test_one_step_of_sgd_equals_the_formula(value_function):
    start, gradient = draw(1, SIZE), draw(1, SIZE, seed=1)
    phi = torch.nn.Parameter(start.clone())
    found = stepped(phi, wrapped(phi, value_function), [gradient])
    generator = seeded(5)
    torch.randn(1, 1, generator=generator)
    noise = torch.randn(1, 3, SIZE, generator=generator)[0]
    inside = torch.randn(1, 3, 1, generator=generator)[0]
    unit = gradient[0] / gradient.norm()
    direction = torch.zeros(SIZE)
    for pair in range(3):
        delta = (0.01 / (2 * SIZE)) ** 0.5 * noise[pair]
        delta = delta - (0.01 / 2) ** 0.5 * inside[pair] * unit
        rise = value_function(start + delta) - value_function(start - delta)
        direction += delta * rise / (0.01 * 3)
    expected = start - 0.1 * direction
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_flat_phi_steps_as_a_row(value_function):
    start, gradients = draw(SIZE), draw(4, SIZE, seed=1)
    for kind in KINDS:
        flat = torch.nn.Parameter(start.clone())
        row = torch.nn.Parameter(start[None].clone())
        one = stepped(flat, wrapped(flat, value_function, kind), gradients)
        rows = gradients[:, None]
        other = stepped(row, wrapped(row, value_function, kind), rows)
        assert one.shape == (SIZE,)
        torch.testing.assert_close(one, other[0])


@pytest.mark.parametrize("kind", KINDS)
def test_guided_steps_descend_the_value_function(kind, value_function):
    phi = torch.nn.Parameter(value_function.centre + 2 + draw(4, SIZE))
    before = value_function(phi.detach())
    found = stepped(phi, wrapped(phi, value_function, kind), draw(60, 4, SIZE, seed=2))
    assert (value_function(found) < 0.5 * before).all()


def test_the_length_is_that_of_the_gradient_handed_over(value_function):
    phi = torch.nn.Parameter(draw(4, SIZE))
    before = phi.detach().clone()
    optimizer = wrapped(phi, value_function, length=0.3)
    after = stepped(phi, optimizer, [draw(4, SIZE, seed=1)])
    lengths = (after - before).norm(dim=1)
    torch.testing.assert_close(lengths, torch.full((4,), 0.1 * 0.3))


def test_jitter_gives_every_row_a_length_of_its_own_and_keeps_it(value_function):
    phi = torch.nn.Parameter(draw(500, SIZE))
    optimizer = wrapped(phi, value_function, length=1.0, jitter=0.5)
    lengths = []
    for seed in (1, 2):
        before = phi.detach().clone()
        stepped(phi, optimizer, [draw(500, SIZE, seed=seed)])
        lengths.append((phi.detach() - before).norm(dim=1) / 0.1)
    torch.testing.assert_close(lengths[0], lengths[1], rtol=1e-3, atol=1e-4)
    assert lengths[0].log().mean().item() == pytest.approx(0.0, abs=0.08)
    assert lengths[0].log().std().item() == pytest.approx(0.5, rel=0.1)


def test_a_flat_value_function_moves_nothing_and_divides_by_nothing():
    flat = Bowl(torch.zeros(SIZE))
    flat.forward = lambda phi: torch.zeros(len(phi))
    start = draw(2, SIZE)
    for length in (None, 0.3):
        phi = torch.nn.Parameter(start.clone())
        found = stepped(phi, wrapped(phi, flat, length=length), [draw(2, SIZE)])
        assert torch.equal(found, start)


def test_a_zero_loss_gradient_searches_in_all_directions(value_function):
    phi = torch.nn.Parameter(value_function.centre + torch.full((2, SIZE), 2.0))
    zeros = torch.zeros(80, 2, SIZE)
    found = stepped(phi, wrapped(phi, value_function), zeros)
    start = value_function.centre + 2.0
    gained = value_function(start[None]) - value_function(found)
    assert (gained > 0.5 * value_function(start[None])).all()


def test_phi_stays_within_the_radius_of_what_the_value_function_knows():
    far = Bowl(torch.full((SIZE,), 50.0))
    far.phi_mean.copy_(torch.full((SIZE,), 0.5))
    phi = torch.nn.Parameter(draw(4, SIZE))
    optimizer = wrapped(phi, far, length=5.0, radius=2.0)
    for seed in range(40):
        stepped(phi, optimizer, [draw(4, SIZE, seed=seed)])
        distance = (phi.detach() - far.phi_mean).norm(dim=1)
        assert (distance <= 2.0 + 1e-5).all()
    assert (distance > 1.9).all()
    # A flat phi does, too.
    phi = torch.nn.Parameter(torch.zeros(SIZE))
    far.phi_mean.zero_()
    stepped(phi, wrapped(phi, far, length=30.0, radius=2.0), [draw(SIZE)])
    assert phi.detach().norm().item() == pytest.approx(2.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_of_the_docstring_runs(kind):
    task, generator = QuadraticTask(), seeded()
    value_function = Bowl(task.metric_minimum)
    phi = torch.nn.Parameter(torch.zeros(3, task.size))
    before = task.cost(phi.detach())
    optimizer = wrapped(phi, value_function, kind)
    for _ in range(60):
        optimizer.zero_grad()
        loss = task.losses(phi, generator).sum()
        loss.backward()
        optimizer.step()
    assert (task.cost(phi.detach()) < 0.7 * before).all()


def test_the_defaults_need_nothing_else():
    phi = torch.nn.Parameter(torch.zeros(2, 3))
    value_function = ValueFunction(3, seeded()).train()
    optimizer = MetricOptimizer(torch.optim.SGD([phi], lr=1.0), value_function)
    assert not value_function.training
    phi.sum().backward()
    optimizer.step()
    assert torch.isfinite(phi).all()
    optimizer.zero_grad()
    assert phi.grad is None


def test_the_value_function_is_left_as_it_was(value_function):
    value_function = ValueFunction(SIZE, seeded())
    before = {name: t.clone() for name, t in value_function.state_dict().items()}
    phi = torch.nn.Parameter(draw(3, SIZE))
    stepped(phi, wrapped(phi, value_function), draw(3, 3, SIZE))
    for name, value in value_function.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(weight.grad is None for weight in value_function.parameters())


def test_a_step_without_a_gradient_and_more_than_phi_are_refused(value_function):
    phi = torch.nn.Parameter(draw(1, SIZE))
    with pytest.raises(ConfigError, match=r"call loss.backward\(\) before step\(\)"):
        wrapped(phi, value_function).step()
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    with pytest.raises(ConfigError, match="phi alone, got one over 2 parameters"):
        MetricOptimizer(torch.optim.SGD(parameters, lr=0.1), value_function)


def test_what_is_no_value_function_is_refused():
    phi = torch.nn.Parameter(torch.zeros(1, 5))
    with pytest.raises(ConfigError, match="must be a ValueFunction of phi, got the fu"):
        MetricOptimizer(torch.optim.SGD([phi], lr=0.1), lambda rows: rows)


@pytest.mark.parametrize("setting", ["history", "pairs", "variance"])
def test_guidance_needs_positive_settings(setting):
    with pytest.raises(ConfigError, match="history >= 1, pairs >= 1 and variance > 0"):
        Guidance(**{setting: 0})

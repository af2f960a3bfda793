"""A learned optimizer where SGD stood."""

import re

import pytest
import torch

from metricopt.algorithm1.optimizer import MetricOptimizer
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.learned_optimizers import LearnedStepper, MetricOptMLP, Unroll
from tests.metricopt.drawn import seeded
from tests.metricopt.learned_optimizers.quadratics import SIZE, Descent, Noisy


def learned(**changes):
    made = MetricOptMLP(40, **changes)
    with torch.no_grad():
        made.network[-1].weight.normal_(generator=seeded(3))
        made.network[-1].weight.mul_(0.3)
    return made


def stepped(stepper, tasks, steps, first=0):
    """Step rows of phi in a training loop as users write it."""
    phi = stepper.phi
    for step in range(first, first + steps):
        stepper.zero_grad()
        losses = tasks.losses(phi[None], step)[0]
        losses.sum().backward()
        stepper.see(loss=losses)
        if stepper.wants_metric:
            stepper.see(metric=tasks.costs(phi.detach()[None], step)[0])
        stepper.step()
    return phi.detach().clone()


def test_it_steps_as_runs_do_in_meta_training():
    tasks = Noisy(range(3))
    phi = torch.nn.Parameter(tasks.starts().clone())
    found = stepped(LearnedStepper([phi], learned()), tasks, 7)
    runs = Unroll(learned(), tasks)
    runs.advance(7)
    torch.testing.assert_close(found, runs.phi[0])
    assert not torch.allclose(found, tasks.starts(), atol=0.1)


def test_a_closure_gives_the_loss_of_a_flat_phi():
    tasks, optimizer = Noisy([4]), learned(inputs=("gradient", "loss"))
    phi = torch.nn.Parameter(tasks.starts()[0].clone())
    stepper, step = LearnedStepper([phi], optimizer), 0

    def closure():
        stepper.zero_grad()
        loss = tasks.losses(phi[None, None], step)[0, 0]
        loss.backward()
        return loss

    for step in range(5):  # noqa: B007
        value = stepper.step(closure)
    assert value.shape == ()
    runs = Unroll(optimizer, tasks)
    runs.advance(5)
    torch.testing.assert_close(phi.detach(), runs.phi[0, 0])


def test_descent_with_a_learned_rate_is_sgd():
    start = torch.randn(SIZE, generator=seeded())
    paths = []
    for make in (
        lambda phi: LearnedStepper([phi], Descent(0.1, dtype=torch.float32)),
        lambda phi: torch.optim.SGD([phi], 0.1),
    ):
        phi = torch.nn.Parameter(start.clone())
        optimizer = make(phi)
        for _ in range(4):
            optimizer.zero_grad()
            phi.square().sum().backward()
            optimizer.step()
        paths.append(phi.detach())
    torch.testing.assert_close(*paths)


def test_it_goes_on_where_its_state_was_saved():
    tasks = Noisy(range(2))
    phi = torch.nn.Parameter(tasks.starts().clone())
    first = LearnedStepper([phi], learned())
    stepped(first, tasks, 3)
    copied = torch.nn.Parameter(phi.detach().clone())
    second = LearnedStepper([copied], learned())
    second.load_state_dict(first.state_dict())
    expected = stepped(first, tasks, 4, first=3)
    assert torch.equal(stepped(second, tasks, 4, first=3), expected)


def test_a_row_that_diverges_goes_back_to_its_last_finite_phi():
    phi = torch.nn.Parameter(torch.zeros(3, 2))
    stepper = LearnedStepper([phi], Descent(1.0, dtype=torch.float32))
    limits = torch.tensor([10.0, 1.5, 10.0])
    for step in range(4):
        losses = -phi.sum(1)
        losses = losses.masked_fill(phi[:, 0].detach() > limits, torch.nan)
        phi.grad = torch.full_like(phi, -1.0)
        if step == 2:
            phi.grad[2] = torch.inf
        stepper.see(loss=losses)
        stepper.step()
    assert stepper.frozen_at.isnan().tolist() == [True, False, False]
    assert stepper.frozen_at[1:].tolist() == [2, 2]
    # Row 1 was finite at 1, row 2 before the step that was none.
    assert phi[:, 0].tolist() == [4, 1, 1]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (
            lambda phi: LearnedStepper([phi, torch.nn.Parameter(phi)], learned()),
            ConfigError,
            "steps phi alone, got an optimizer over 2 parameters",
        ),
        (
            lambda phi: LearnedStepper(
                [torch.nn.Parameter(phi[None, None])], learned()
            ),
            ShapeError,
            "phi must have shape [d] or [R, d], got (1, 1, 4)",
        ),
        (
            lambda phi: LearnedStepper([phi], learned()).see(loss=torch.ones(2)),
            ShapeError,
            "loss must have shape [], one number for every row of phi, got [2]",
        ),
        (
            lambda phi: LearnedStepper([phi], learned()).see(metric=93.0),
            DataError,
            "metric must be a cost in [0, 1], lower is better, got 93 to 93",
        ),
        (
            lambda phi: LearnedStepper([phi], learned().double()),
            ConfigError,
            "phi must be float64 like the weights of the learned optimizer, got float32"
            ": call optimizer.to(torch.float32)",
        ),
        (
            lambda phi: LearnedStepper([phi], learned()).step(),
            ConfigError,
            "phi has no gradient: call loss.backward() before step()",
        ),
    ],
)
def test_what_is_refused(use, error, message):
    with pytest.raises(error, match=re.escape(message)):
        use(torch.zeros(4, requires_grad=True))


def test_what_an_optimizer_goes_by_must_be_shown():
    phi = torch.nn.Parameter(torch.zeros(4))
    phi.grad = torch.ones(4)
    stepper = LearnedStepper([phi], learned())
    with pytest.raises(ConfigError, match=r"by the metric: call see\(metric=...\)"):
        stepper.step()
    stepper.see(metric=0.5)
    with pytest.raises(ConfigError, match=r"by the loss: call see\(loss=...\) before"):
        stepper.step()
    stepper.see(loss=1.0)
    stepper.step()
    # The metric holds, a loss is one of a step.
    with pytest.raises(ConfigError, match="by the loss"):
        stepper.step()
    assert (phi != 0).all()


def test_it_takes_the_steps_of_metricopt():
    learned = MetricOptMLP(5, ("gradient", "mean gradient", "loss", "metric"))
    value_function = ValueFunction(4).eval()
    phi = torch.nn.Parameter(torch.zeros(2, 4))
    guided = MetricOptimizer(LearnedStepper([phi], learned), value_function)
    assert guided.wants_metric
    directions = []
    for _ in range(2):
        guided.zero_grad()
        loss = (phi - 1).square().sum(1)
        loss.sum().backward()
        guided.see(loss=loss, metric=torch.tensor([0.5, 0.25]))
        guided.step()
        directions.append(phi.grad.clone())
    # The learned optimizer steps on the value function's direction, not on the loss.
    alone = torch.nn.Parameter(torch.zeros(2, 4))
    stepper = LearnedStepper([alone], learned)
    for direction in directions:
        loss = (alone - 1).square().sum(1)
        alone.grad = direction
        stepper.see(loss=loss, metric=torch.tensor([0.5, 0.25]))
        stepper.step()
    torch.testing.assert_close(phi, alone)


def test_metricopt_without_a_learned_optimizer_needs_no_loss():
    phi = torch.nn.Parameter(torch.zeros(4))
    guided = MetricOptimizer(torch.optim.SGD([phi], lr=1.0), ValueFunction(4))
    guided.see(loss=1.0)
    assert not guided.wants_metric
    unseen = MetricOptimizer(
        LearnedStepper([phi], MetricOptMLP(5, ("loss",))), ValueFunction(4)
    )
    phi.grad = torch.ones(4)
    with pytest.raises(ConfigError, match="goes by the loss: call see"):
        unseen.step()


def test_a_run_longer_than_trained_for_warns_once():
    phi = torch.nn.Parameter(torch.ones(3))
    stepper = LearnedStepper([phi], Descent(0.1, horizon=4, dtype=torch.float32))
    phi.grad = torch.ones(3)
    for _ in range(4):
        stepper.step()
    with pytest.warns(UserWarning, match="for runs of 4 steps, .* on to step 5"):
        stepper.step()
    stepper.step()


def test_what_was_loaded_is_no_optimizer_itself():
    with pytest.raises(ConfigError, match="learned must be a LearnedOptimizer, got"):
        LearnedStepper([torch.nn.Parameter(torch.zeros(3))], object())

"""Runs in lock-step: against a loop, cut, differentiated, and stopped."""

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from metricopt.errors import ConfigError, LossError, ShapeError
from metricopt.learned_optimizers import InnerTasks, MetricOptMLP, Objective, Unroll
from metricopt.learned_optimizers.contract import Seen
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.learned_optimizers.quadratics import (
    SIZE,
    Bare,
    Descent,
    Noisy,
    Quadratics,
)

OBSERVED = [0, 2, 3, 4, 6]
"""Steps of 7 that an optimizer with a horizon of 4 observes the metric before."""


def lively(inputs=ALL_INPUTS, horizon=4):
    """An optimizer whose first steps are not small."""
    made = MetricOptMLP(horizon, inputs).double()
    with torch.no_grad():
        made.network[-1].weight.normal_(generator=seeded(3))
        made.network[-1].weight.mul_(0.3)
    return made


def tasks(kind=Noisy, count=2):
    return kind(range(count), dtype=torch.float64)


def looped(optimizer, family, task, steps):
    """Losses, costs and phi of one run, step by step."""
    phi = family.starts()[task].clone()
    state, losses, costs, shown = optimizer.start(phi), [], [], None
    for step in range(steps + 1):
        at = family.starts().clone()
        at[task] = phi
        at.requires_grad_()
        loss = family.losses(at[None], step)[0, task]
        (gradient,) = torch.autograd.grad(loss, at)
        cost = family.costs(at[None].detach(), step)[0, task]
        losses.append(loss.detach())
        costs.append(cost)
        if step in OBSERVED:
            shown = cost
        if step < steps:
            seen = Seen(phi, gradient[task], loss.detach(), shown, step)
            with torch.no_grad():
                move, state = optimizer(seen, state)
            phi = phi + move
    return torch.stack(losses), torch.stack(costs), phi


def test_runs_equal_a_loop_and_see_the_metric_now_and_then():
    optimizer, family = lively(), tasks()
    assert [step for step in range(7) if optimizer.observes(step)] == OBSERVED
    runs = Unroll(optimizer, family, supervised=True)
    found = runs.advance(7)
    for task in range(2):
        losses, costs, phi = looped(optimizer, family, task, 7)
        torch.testing.assert_close(found.losses[:, 0, task], losses)
        torch.testing.assert_close(found.costs[:, 0, task], costs)
        torch.testing.assert_close(runs.phi[0, task], phi)
    assert (runs.frozen_at == -1).all()
    assert not found.losses.requires_grad


def test_copies_with_weights_of_their_own_equal_optimizers_with_these_weights():
    optimizer, family = lively(), tasks()
    centre = parameters_to_vector(optimizer.parameters()).detach()
    weights = centre + 0.1 * draw(3, 2, len(centre)).double()
    runs = Unroll(optimizer, family, copies=3)
    found = runs.advance(5, weights)
    for copy, task in ((0, 0), (2, 1)):
        torch.nn.utils.vector_to_parameters(
            weights[copy, task].clone(), optimizer.parameters()
        )
        losses, _, phi = looped(optimizer, family, task, 5)
        torch.testing.assert_close(found.losses[:, copy, task], losses)
        torch.testing.assert_close(runs.phi[copy, task], phi)


def test_windows_go_on_where_the_last_one_ended():
    whole, parts = (Unroll(lively(), tasks(), supervised=True) for _ in range(2))
    expected = whole.advance(9)
    parts.advance(4)
    found = parts.advance(5)
    assert torch.equal(found.losses, expected.losses)
    assert torch.equal(found.costs, expected.costs)
    assert parts.step == 9


def test_a_metric_that_nobody_asks_for_is_not_asked():
    blind = lively(("gradient", "loss"))
    assert Unroll(blind, tasks(Bare)).advance(3).costs is None
    for optimizer, supervised in ((lively(), False), (blind, True)):
        with pytest.raises(ConfigError, match="Bare has no metric: use an optimizer"):
            Unroll(optimizer, tasks(Bare), supervised=supervised).advance(1)


def gradient_of(optimizer, weights, before, steps, derivatives="full"):
    """The objective of a window after `before` steps, and its gradient."""
    at = weights.clone().requires_grad_()
    runs = Unroll(optimizer, tasks(), derivatives=derivatives, supervised=True)
    runs.advance(before, weights.expand(1, 2, -1))
    found = runs.advance(steps, at.expand(1, 2, -1))
    terms = Objective(sharpness=3.0).terms(found.losses, found.costs, 8)
    value = terms[before:].sum()
    return value.item(), torch.autograd.grad(value, at)[0]


@pytest.mark.parametrize("before", [0, 3])
def test_gradients_through_steps_are_those_of_finite_differences(before):
    optimizer = lively()
    weights = parameters_to_vector(optimizer.parameters()).detach()
    _, gradient = gradient_of(optimizer, weights, before, 4)
    direction = draw(len(weights), seed=5).double()
    direction /= direction.norm()

    def after(shift):
        # What was before the window, with the weights as they are.
        runs = Unroll(optimizer, tasks(), supervised=True)
        runs.advance(before, weights.expand(1, 2, -1))
        moved = (weights + shift * direction).expand(1, 2, -1)
        found = runs.advance(4, moved)
        return (
            Objective(sharpness=3.0).terms(found.losses, found.costs, 8)[before:].sum()
        )

    slope = (after(1e-6) - after(-1e-6)).item() / 2e-6
    assert (gradient @ direction).item() == pytest.approx(slope, rel=1e-5)
    first = gradient_of(optimizer, weights, before, 4, "first")
    assert first[0] == pytest.approx(gradient_of(optimizer, weights, before, 4)[0])
    assert (first[1] @ direction).item() != pytest.approx(slope, rel=1e-2)


class Cliff(Quadratics):
    """Infinite where the first coordinate of task 1 is beyond a limit."""

    limit = 1.5

    def starts(self):
        return torch.ones_like(self.start)

    def losses(self, phi, step):
        losses = super().losses(phi, step)
        beyond = phi[:, 1, 0].abs() > self.limit
        return torch.stack(
            [losses[:, 0], losses[:, 1].masked_fill(beyond, torch.inf)], dim=1
        )


class Rising(Descent):
    """Adds the rate to every coordinate."""

    def _move(self, seen, state):
        return self.rate.expand_as(seen.phi), state


def test_a_run_that_diverges_stays_at_its_last_finite_phi():
    runs = Unroll(Rising(0.2), tasks(Cliff))
    found = runs.advance(6)
    assert runs.frozen_at.tolist() == [[-1, 3]]
    assert runs.phi[0, 0].tolist() == pytest.approx([2.2] * SIZE)
    assert runs.phi[0, 1].tolist() == pytest.approx([1.4] * SIZE)
    assert found.losses.isfinite().all()
    assert (found.losses[2:, 0, 1] == found.losses[2, 0, 1]).all()
    assert runs.advance(2).losses.isfinite().all()
    assert runs.frozen_at.tolist() == [[-1, 3]]


def test_steps_that_are_no_numbers_stop_their_own_run_alone():
    weights = torch.tensor([[[0.1], [0.1]], [[torch.nan], [0.1]]]).double()
    runs = Unroll(Descent(0.1), tasks(Quadratics), copies=2)
    runs.advance(3, weights)
    assert runs.frozen_at.tolist() == [[-1, -1], [1, -1]]
    assert torch.equal(runs.phi[1, 0], tasks(Quadratics).starts()[0])


def test_a_gradient_that_is_no_number_stops_a_run():
    class Kink(InnerTasks):
        def starts(self):
            return torch.full((1, 1), 0.5)

        def losses(self, phi, step):
            return phi.abs().sqrt().squeeze(-1)

    runs = Unroll(Rising(-0.25, dtype=torch.float32), Kink())
    runs.advance(4)
    assert runs.frozen_at.tolist() == [[2]]
    assert runs.phi.tolist() == [[[0.25]]]


WRONG = {
    "a scalar": (lambda losses: losses.sum(), ShapeError, r"\[2, 2\], .* got \[\]"),
    "means": (lambda losses: losses.mean(0), ShapeError, r"\[2, 2\], .* got \[2\]"),
    "detached": (lambda losses: losses.detach(), LossError, "must be differentiable"),
    "of others": (
        lambda losses: torch.ones_like(losses, requires_grad=True),
        LossError,
        "losses that do not depend on it",
    ),
    "numbers": (lambda losses: losses.sum().item(), ConfigError, r"a tensor \[C, B\]"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("derivatives", ["none", "full"])
def test_losses_of_another_kind_are_refused(name, derivatives):
    change, error, text = WRONG[name]

    class Wrong(Quadratics):
        def losses(self, phi, step):
            return change(super().losses(phi, step))

    with pytest.raises(error, match=text):
        Unroll(Descent(0.1), tasks(Wrong), copies=2, derivatives=derivatives)


def test_costs_of_another_shape_are_refused():
    class Wrong(Quadratics):
        def costs(self, phi, step):
            return super().costs(phi, step).mean()

    with pytest.raises(ShapeError, match=r"the costs of tasks .* = \[1, 2\]"):
        Unroll(Descent(0.1), tasks(Wrong), supervised=True)

"""Eq. (3) and (4): subspace, covariance, perturbations, descent estimate."""

import pytest
import torch

from metricopt.algorithm1.optimizer import (
    descent_estimate,
    perturbations,
    sample_perturbations,
    search_covariance,
    subspace_basis,
)
from metricopt.algorithm1.recipe import RECIPE, MetaTrained
from metricopt.algorithm1.step_choice import guided_optimizer
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.tasks.descent import run, starts
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

CASES = list(load_golden("guided_es"))


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request):
    return request.param


def projector(basis):
    return basis @ basis.transpose(1, 2)


def draw(*shape, seed=0):
    generator = seeded(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def objective(case):
    """f(z) = z' H z / 2 + b' z, in plain loops."""
    hessian, linear = case.inputs["function_hessian"], case.inputs["function_linear"]

    def function(points):
        values = []
        for point in points:
            value = linear @ point
            if hessian is not None:
                value = value + 0.5 * point @ hessian @ point
            values.append(value)
        return torch.stack(values)

    return function


def test_golden_subspace_and_covariance(case):
    history = case.inputs["gradient_history"][None]
    basis = subspace_basis(history)
    assert_golden(projector(basis)[0], case.expected["projector"], case.tolerance)
    covariance = search_covariance(basis)[0]
    assert_golden(covariance, case.expected["covariance"], case.tolerance)
    trace = case.expected["covariance_trace"]
    assert_golden(covariance.trace(), trace, case.tolerance)


def test_golden_perturbations_and_estimate(case):
    inputs, variance = case.inputs, case.settings["s2"]
    delta = perturbations(
        inputs["basis_used"][None],
        inputs["noise_full"][None],
        inputs["noise_subspace"][None],
        variance,
    )
    assert_golden(delta[0], case.expected["perturbations"], case.tolerance)
    function, phi = objective(case), inputs["phi"]
    plus, minus = function(phi + delta[0]), function(phi - delta[0])
    assert_golden(plus, case.expected["f_plus"], case.tolerance)
    assert_golden(minus, case.expected["f_minus"], case.tolerance)
    estimate = descent_estimate(function, phi[None], delta, variance)
    assert_golden(estimate[0], case.expected["estimate"], case.tolerance)


def test_golden_expected_estimate_is_twice_covariance_times_gradient(case):
    inputs = case.inputs
    gradient = inputs["function_linear"]
    if inputs["function_hessian"] is not None:
        gradient = gradient + inputs["function_hessian"] @ inputs["phi"]
    covariance = search_covariance(inputs["basis_used"][None])[0]
    expected = case.expected["expected_estimate"]
    assert_golden(2 * covariance @ gradient, expected, case.tolerance)


def test_the_basis_is_orthonormal_and_spans_what_qr_spans():
    history = draw(4, 3, 9)
    basis = subspace_basis(history)
    identity = torch.eye(3).double().expand(4, 3, 3)
    torch.testing.assert_close(basis.transpose(1, 2) @ basis, identity)
    reference, _ = torch.linalg.qr(history.transpose(1, 2))
    torch.testing.assert_close(projector(basis), projector(reference))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("history", "rank"),
    [
        ([[0.0, 0, 0, 0], [0, 0, 0, 0]], 0),
        ([[0.0, 0, 0, 0], [1, 2, 0, 0]], 1),
        ([[3.0, 1, 2, 7], [6, 2, 4, 14]], 1),
        ([[3.0, 1, 2, 7], [-3, -1, -2, -7]], 1),
        ([[3.0, 1, 2, 7], [1e-8, 0, 0, 0]], 2),
        ([[1.0, 0, 0, 0], [0, 1, 0, 0], [0.3, 0.7, 0, 0]], 2),
    ],
)
def test_zero_and_collinear_gradients_add_no_direction(history, rank, dtype):
    history = torch.tensor([history], dtype=dtype)
    basis = subspace_basis(history)
    lengths = basis.norm(dim=1)[0]
    assert sorted(lengths.round(decimals=4).tolist(), reverse=True) == (
        [1.0] * rank + [0.0] * (len(lengths) - rank)
    )
    tolerance = {"atol": 1e-5, "rtol": 0.0}
    unit = history / history.norm(dim=2, keepdim=True).clamp_min(1e-30)
    kept = unit @ projector(basis)
    torch.testing.assert_close(kept, unit, **tolerance)
    covariance = search_covariance(basis)[0]
    torch.testing.assert_close(covariance.trace().item(), 1.0, **tolerance)
    assert torch.linalg.eigvalsh(covariance).min() > 0


def test_no_gradient_is_isotropic_and_more_than_dimensions_span_everything():
    basis = subspace_basis(torch.zeros(1, 3, 5, dtype=torch.float64))
    torch.testing.assert_close(search_covariance(basis)[0], torch.eye(5).double() / 5)
    collinear_first = torch.tensor([[[1.0, 0], [2, 0], [0, 1], [1, 1]]]).double()
    basis = subspace_basis(collinear_first)
    torch.testing.assert_close(projector(basis)[0], torch.eye(2).double())
    assert search_covariance(basis)[0].trace().item() == pytest.approx(1.0)


def test_rows_do_not_influence_each_other():
    history = draw(3, 2, 5)
    history[1, 1] = 2 * history[1, 0]
    alone = torch.cat([subspace_basis(row[None]) for row in history])
    together = subspace_basis(history)
    assert torch.equal(alone, together)
    covariance = torch.cat([search_covariance(row[None]) for row in alone])
    torch.testing.assert_close(search_covariance(together), covariance)


@pytest.mark.parametrize("spanned", [0, 1, 3])
def test_perturbations_have_the_covariance_they_should(spanned):
    history = draw(1, 3, 6, seed=spanned)
    history[:, spanned:] = 0.0
    basis, variance = subspace_basis(history), 0.04
    generator = seeded(1)
    delta = sample_perturbations(basis, 200_000, variance, generator)[0]
    empirical = delta.T @ delta / len(delta)
    expected = variance * search_covariance(basis)[0]
    # The standard error of an entry is below 1.5 sigma_i sigma_j / sqrt(n).
    torch.testing.assert_close(empirical, expected, rtol=0.0, atol=2e-4)
    assert delta.square().sum(1).mean().item() == pytest.approx(variance, rel=0.02)
    assert delta.mean(0).abs().max() < 2e-3


def test_the_mean_estimate_of_a_linear_function_is_twice_covariance_times_slope():
    slope, basis = draw(6, seed=3), subspace_basis(draw(1, 2, 6, seed=4))
    generator = seeded(5)
    delta = sample_perturbations(basis, 200_000, 0.01, generator)
    phi = draw(1, 6, seed=6)
    estimate = descent_estimate(lambda z: z @ slope, phi, delta, 0.01)[0]
    expected = 2 * search_covariance(basis)[0] @ slope
    torch.testing.assert_close(estimate, expected, rtol=0.0, atol=0.02)


def test_the_estimate_equals_a_loop_over_rows_and_pairs():
    phi, delta, variance = draw(3, 4, seed=7), 0.1 * draw(3, 5, 4, seed=8), 0.02

    def function(z):
        return z.sin().sum(-1) + z.prod(-1)

    expected = torch.zeros(3, 4, dtype=torch.float64)
    for row in range(3):
        for move in delta[row]:
            rise = function(phi[row] + move) - function(phi[row] - move)
            expected[row] += move * rise / (variance * 5)
    found = descent_estimate(function, phi, delta, variance)
    torch.testing.assert_close(found, expected)


def test_even_functions_give_no_direction():
    phi, delta = torch.zeros(2, 4).double(), draw(2, 3, 4)
    estimate = descent_estimate(lambda z: z.square().sum(1), phi, delta, 0.01)
    assert torch.equal(estimate, torch.zeros_like(estimate))


def test_samples_depend_on_the_generator_alone_and_follow_the_dtype():
    basis = subspace_basis(draw(2, 2, 5))

    def sample(seed):
        generator = seeded(seed)
        return sample_perturbations(basis, 4, 0.01, generator)

    assert sample(1).shape == (2, 4, 5)
    assert sample(1).dtype == torch.float64
    assert torch.equal(sample(1), sample(1))
    assert not torch.equal(sample(1), sample(2))


class Slope(ValueFunction):
    """Predicts the sum of the coordinates."""

    def forward(self, phi):
        return phi.sum(1)


def trained(*, spread=2.0, reach=100.0):
    return MetaTrained(Slope(6).eval(), RECIPE, 0, spread, reach)


def path_of(optimizer, *, steps=4, **settings):
    task, generator = QuadraticTask(), seeded(0)
    factory = guided_optimizer(trained(**settings), optimizer, steps, 0.5, generator)
    start = starts(task.size, 3, 0.1, generator)
    return run(task, factory, start, steps, generator)[0]


def test_sgd_takes_steps_of_the_length_asked_for_that_fall_to_zero():
    path = path_of("sgd")
    lengths = path.diff(dim=1).norm(dim=2)
    # 0.5 times the spread of 2, then three quarters of it, and so on.
    expected = torch.tensor([1.0, 0.75, 0.5, 0.25]).expand(3, 4)
    torch.testing.assert_close(lengths, expected)


def test_adam_takes_first_steps_of_about_that_length():
    first = path_of("adam").diff(dim=1).norm(dim=2)[:, 0]
    torch.testing.assert_close(first, torch.ones(3), rtol=1e-3, atol=0.0)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_it_goes_down_the_value_function_and_stays_within_reach(optimizer):
    path = path_of(optimizer, steps=30)
    value = path.sum(2)
    assert (value[:, -1] < value[:, 0] - 1).all()
    near = path_of(optimizer, steps=30, reach=0.7)
    assert near[:, 1:].norm(dim=2).max() <= 0.7 + 1e-5

"""Gaussian processes over time: exact posterior, fitted kernel, degenerate rows."""

from dataclasses import replace

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metricopt.gaussian_processes.over_time import (
    LEAST_DEVIATION,
    LENGTH_SCALE,
    NOISE_SHARE,
    Kernel,
    _Process,
    fit_kernel,
    posterior,
)
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded

CASES = list(load_golden("gp_posterior"))
KERNEL = Kernel(length_scale=0.3, signal_variance=0.04, noise_variance=1e-4)


def log_marginal_likelihood(steps, costs, kernel):
    """log p(costs | steps, kernel) of every row, [B], by the process of the product."""
    import gpytorch  # it warns, unless the product imported it before

    process = _Process(steps[..., None], costs, kernel)
    observed = process.likelihood(process.forward(steps[..., None]))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        return observed.log_prob(process.train_targets)


def rows_of(count, observations, seed=0):
    """Sorted times in [0, 1) and smooth noisy costs, each [count, observations]."""
    generator = seeded(seed)
    places = torch.rand(count, 50, generator=generator).argsort(1)[:, :observations]
    times = places.sort(1).values.double() / 50
    noise = torch.randn(times.shape, generator=generator, dtype=torch.float64)
    phase = torch.arange(count)[:, None]
    return times, 0.4 + 0.2 * torch.sin(4 * times + phase) + 0.005 * noise


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_golden_posterior(case):
    settings, length = case.settings, case.settings["T"]
    fields = ("length_scale", "signal_variance", "noise_variance")
    kernel = Kernel(**{name: settings[name] for name in fields})
    times = case.inputs["t_observed"][None].double() / length
    costs = case.inputs["y_observed"][None]
    centre = costs.mean() if settings["prior_mean"] == "observed_mean" else 0.0
    grid = case.expected["t_grid"].double() / length
    mean, variance = posterior(times, costs - centre, grid, kernel)
    assert_golden(mean[0] + centre, case.expected["mean"], case.tolerance)
    assert_golden(variance[0], case.expected["latent_variance"], case.tolerance)
    observed = variance[0] + kernel.noise_variance
    assert_golden(observed, case.expected["observation_variance"], case.tolerance)
    likelihood = log_marginal_likelihood(times, costs - centre, kernel)
    expected = case.expected["log_marginal_likelihood"]
    assert_golden(likelihood[0], expected, case.tolerance)


def oracle(times, costs, kernel):
    covariance = ConstantKernel(kernel.signal_variance) * RBF(kernel.length_scale)
    process = GaussianProcessRegressor(
        covariance, alpha=kernel.noise_variance, optimizer=None
    )
    return process.fit(times[:, None].numpy(), costs.numpy())


@pytest.mark.parametrize("observations", [1, 2, 3, 8])
def test_posterior_and_likelihood_equal_those_of_scikit_learn(observations):
    times, costs = rows_of(4, observations)
    grid = torch.arange(60, dtype=torch.float64) / 60
    mean, variance = posterior(times, costs, grid, KERNEL)
    likelihood = log_marginal_likelihood(times, costs, KERNEL)
    for row in range(4):
        process = oracle(times[row], costs[row], KERNEL)
        expected, deviation = process.predict(grid[:, None].numpy(), return_std=True)
        torch.testing.assert_close(mean[row], torch.from_numpy(expected))
        squared = torch.from_numpy(deviation).square()
        torch.testing.assert_close(variance[row], squared, rtol=1e-5, atol=1e-9)
        found = likelihood[row].item()
        assert found == pytest.approx(process.log_marginal_likelihood_value_)


def test_batched_equals_one_by_one():
    times, costs = rows_of(5, 4)
    grid = torch.linspace(0, 1, 33, dtype=torch.float64)
    together = posterior(times, costs, grid, KERNEL)
    rows = list(zip(times[:, None], costs[:, None], strict=True))
    singles = [posterior(*row, grid, KERNEL) for row in rows]
    for whole, alone in zip(together, zip(*singles, strict=True), strict=True):
        torch.testing.assert_close(whole, torch.cat(alone))
    likelihood = log_marginal_likelihood(times, costs, KERNEL)
    singles = [log_marginal_likelihood(*row, KERNEL) for row in rows]
    torch.testing.assert_close(likelihood, torch.cat(singles))


def test_the_grid_may_be_the_observed_times():
    times, costs = rows_of(1, 5)
    mean, variance = posterior(times, costs, times[0], KERNEL)
    assert (mean - costs).abs().max() < 0.02
    assert (variance < 2 * KERNEL.noise_variance).all()
    # Far from observations the prior returns.
    kernel = Kernel(0.02, 0.04, 1e-4)
    times, costs = torch.zeros(1, 1).double(), torch.full((1, 1), 0.3).double()
    mean, variance = posterior(times, costs, torch.ones(1).double(), kernel)
    assert mean.item() == pytest.approx(0.0, abs=1e-12)
    assert variance.item() == pytest.approx(0.04)


def total_likelihood(times, costs, kernel):
    centred = costs - costs.mean(1, keepdim=True)
    return log_marginal_likelihood(times, centred, kernel).sum().item()


def test_the_fitted_kernel_is_likelier_than_its_neighbours():
    times, costs = rows_of(24, 6)
    kernel = fit_kernel(times, costs, iterations=60)
    best = total_likelihood(times, costs, kernel)
    assert best > total_likelihood(times, costs, KERNEL)
    for factor in (0.7, 1.4):
        longer = replace(kernel, length_scale=kernel.length_scale * factor)
        assert total_likelihood(times, costs, longer) < best


def test_the_fitted_kernel_stays_within_its_bounds():
    for seed in range(3):
        generator = seeded(seed)
        times, _ = rows_of(8, 4, seed)
        jumps = torch.rand(8, 4, generator=generator, dtype=torch.float64)
        kernel = fit_kernel(times, jumps)
        assert LENGTH_SCALE[0] <= kernel.length_scale <= LENGTH_SCALE[1]
        share = kernel.noise_variance / jumps.var(1).mean().item()
        assert NOISE_SHARE[0] <= share * 1.01
        assert share <= NOISE_SHARE[1] * 1.01


def test_the_fit_scales_with_the_costs_and_ignores_their_level():
    times, costs = rows_of(8, 5)
    kernel, scaled = fit_kernel(times, costs), fit_kernel(times, 3 + 0.1 * costs)
    assert scaled.length_scale == pytest.approx(kernel.length_scale)
    assert scaled.signal_variance == pytest.approx(0.01 * kernel.signal_variance)
    assert scaled.noise_variance == pytest.approx(0.01 * kernel.noise_variance)


@pytest.mark.parametrize(("count", "observations"), [(1, 1), (5, 1), (5, 4)])
def test_constant_costs_and_single_observations_get_a_fixed_kernel(count, observations):
    times, costs = rows_of(count, observations)
    kernel = fit_kernel(times, torch.full_like(costs, 0.25))
    assert kernel.signal_variance == LEAST_DEVIATION**2
    assert LENGTH_SCALE[0] <= kernel.length_scale <= LENGTH_SCALE[1]
    assert 0 < kernel.noise_variance < kernel.signal_variance

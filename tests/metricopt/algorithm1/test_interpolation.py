"""The Gaussian process over time: exact posterior, pooled kernel, degenerate rows."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metricopt.algorithm1.interpolation import (
    DEVIATION_FLOOR,
    LEAST_DEVIATION,
    LENGTH_SCALE,
    NOISE_SHARE,
    Interpolator,
    Kernel,
    _Process,
    fit_kernel,
    posterior,
)
from metricopt.algorithm1.objective import fisher_sets
from metricopt.algorithm1.trajectories import Trajectories
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


def trajectories_of(count, observations, length=50, seed=0):
    generator = seeded(seed)
    order = torch.rand(count, length, generator=generator).argsort(1)
    steps = order[:, :observations].sort(1).values
    costs = 0.4 + 0.2 * torch.sin(4 * steps.double() / length)
    phi = torch.zeros(count, length, 2)
    return Trajectories(phi, phi[..., 0], steps, costs)


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


def test_interpolation_shapes_and_floor():
    interpolator, trajectories = Interpolator(), trajectories_of(6, 4)
    mean, deviation = interpolator.interpolate(trajectories)
    assert mean.shape == deviation.shape == (6, 50)
    assert mean.dtype == deviation.dtype == torch.float32
    spread = trajectories.costs.std().item()
    assert interpolator.floor == pytest.approx(DEVIATION_FLOOR * spread)
    assert deviation.min() == pytest.approx(interpolator.floor)


def test_pairs_are_told_apart_however_little_the_metric_moves():
    apart = []
    for scale in (1.0, 1e-2, 1e-3):
        trajectories = trajectories_of(4, 5)
        faint = replace(trajectories, costs=0.3 + scale * trajectories.costs)
        mean, deviation = Interpolator().interpolate(faint)
        negative = fisher_sets(mean.flatten(), deviation.flatten())[1]
        apart.append(negative.float().mean().item())
    assert apart[0] > 0.2
    assert apart == pytest.approx([apart[0]] * 3, abs=0.02)


def test_interpolation_is_near_the_truth_and_surest_where_it_was_observed():
    trajectories = trajectories_of(16, 5)
    mean, deviation = Interpolator().interpolate(trajectories)
    truth = 0.4 + 0.2 * torch.sin(4 * torch.arange(50) / 50)
    inside = torch.zeros(16, 50, dtype=torch.bool)
    for row, steps in enumerate(trajectories.steps.tolist()):
        inside[row, steps[0] : steps[-1] + 1] = True
    assert (mean - truth).abs()[inside].mean() < 0.02
    at_observed = deviation.gather(1, trajectories.steps)
    elsewhere = deviation.scatter(1, trajectories.steps, torch.nan)
    assert at_observed.max() < elsewhere.nanmean()
    found = mean.gather(1, trajectories.steps).double()
    torch.testing.assert_close(found, trajectories.costs, rtol=0.0, atol=0.02)


def test_the_deviation_is_the_root_of_the_posterior_variance():
    trajectories, interpolator = trajectories_of(4, 3), Interpolator()
    mean, deviation = interpolator.interpolate(trajectories)
    for row in range(4):
        costs = trajectories.costs[row]
        times = trajectories.steps[row].double() / 50
        process = oracle(times, costs - costs.mean(), interpolator.kernel)
        grid = torch.arange(50)[:, None].double() / 50
        expected, spread = process.predict(grid.numpy(), return_std=True)
        expected = (torch.from_numpy(expected) + costs.mean()).float()
        torch.testing.assert_close(mean[row], expected)
        floored = torch.from_numpy(spread).clamp_min(interpolator.floor).float()
        torch.testing.assert_close(deviation[row], floored, rtol=1e-3, atol=1e-6)


def test_a_constant_metric_is_interpolated_by_the_constant():
    trajectories = trajectories_of(3, 4)
    flat = replace(trajectories, costs=torch.full_like(trajectories.costs, 0.25))
    mean, deviation = Interpolator().interpolate(flat)
    assert torch.equal(mean, torch.full((3, 50), 0.25))
    assert torch.equal(deviation, torch.full((3, 50), LEAST_DEVIATION))


def test_a_single_observation_is_held_and_every_step_may_be_observed():
    trajectories = trajectories_of(3, 1)
    mean, deviation = Interpolator().interpolate(trajectories)
    expected = trajectories.costs.float().expand(3, 50)
    torch.testing.assert_close(mean, expected)
    assert torch.isfinite(deviation).all()
    trajectories = trajectories_of(1, 8, length=8)
    mean, _ = Interpolator().interpolate(trajectories)
    expected = trajectories.costs.float()
    torch.testing.assert_close(mean, expected, rtol=0.0, atol=0.02)


def test_the_kernel_is_refitted_each_time_the_rows_have_doubled():
    interpolator, kernels = Interpolator(), []
    for block in range(8):
        interpolator.interpolate(trajectories_of(2, 4, seed=block))
        kernels.append(interpolator.kernel)
    # Rows seen: 2, 4, 6, 8, ...; refits at 2, 4, 8 and 16.
    changed = [a is not b for a, b in pairwise(kernels)]
    assert changed == [True, False, True, False, False, False, True]


def test_only_the_last_rows_of_the_pool_are_fitted():
    small, whole = Interpolator(pool=4), Interpolator()
    for seed in range(4):
        block = trajectories_of(2, 4, seed=seed)
        small.interpolate(block)
        whole.interpolate(block)
    last = [trajectories_of(2, 4, seed=seed) for seed in (2, 3)]
    times = torch.cat([part.steps.double() / 50 for part in last])
    expected = fit_kernel(times, torch.cat([part.costs for part in last]))
    assert small.kernel == expected
    assert whole.kernel != expected

"""Interpolated costs: their floor, a pooled kernel, constant and single costs."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from metricopt.algorithm1.interpolation import Interpolator
from metricopt.algorithm1.objective import fisher_sets
from metricopt.algorithm1.trajectories import Trajectories
from metricopt.gaussian_processes.over_time import (
    DEVIATION_FLOOR,
    LEAST_DEVIATION,
    fit_kernel,
)
from tests.metricopt.drawn import seeded
from tests.metricopt.gaussian_processes.test_over_time import oracle


def trajectories_of(count, observations, length=50, seed=0):
    generator = seeded(seed)
    order = torch.rand(count, length, generator=generator).argsort(1)
    steps = order[:, :observations].sort(1).values
    costs = 0.4 + 0.2 * torch.sin(4 * steps.double() / length)
    phi = torch.zeros(count, length, 2)
    return Trajectories(phi, phi[..., 0], steps, costs)


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

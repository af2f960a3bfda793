"""Bayesian optimisation: its prior, its process, its box, and a known optimum."""

import math

import pytest
import torch

from baselines.phi_methods.trust_region_bo import TrustRegionBO, _Process, _Search
from metricopt.methods.cma_es import CMAES
from metricopt.methods.result import Budget
from tests.contracts.outputs_task import seeded
from tests.metricopt.quadratic_task import QuadraticTask

SETTINGS = TrustRegionBO(reach=2.0, candidates=100, fit_steps=5)


def test_it_gets_further_than_cma_es_on_a_quadratic():
    task = QuadraticTask()
    found = SETTINGS.run(task, Budget(30, 0), seeded())
    plain = CMAES().run(task, Budget(30, 0), seeded(), rows=3)
    assert task.cost(found.phi).item() < 0.8 * task.cost(plain.phi).min()


@pytest.mark.parametrize("size", [4, 100])
def test_length_scales_grow_with_the_square_root_of_the_dimension(size):
    points = torch.rand(5, size, generator=seeded(), dtype=torch.float64)
    process = _Process(points, torch.zeros(5, dtype=torch.float64))
    (prior,) = [
        prior
        for name, _, prior, _, _ in process.named_priors()
        if "lengthscale" in name
    ]
    median = math.exp(prior.loc)
    assert median == pytest.approx(math.exp(math.sqrt(2)) * math.sqrt(size))
    # It starts at the mode of the prior.
    mode = math.exp(prior.loc - prior.scale**2)
    start = process.covar_module.lengthscale.detach()
    torch.testing.assert_close(start, torch.full((1, size), mode, dtype=torch.float64))


def test_the_process_learns_which_coordinate_matters_and_predicts():
    points = torch.rand(40, 3, generator=seeded(), dtype=torch.float64)
    costs = torch.sin(6 * points[:, 0])
    process = _Process(points[:30], costs[:30])
    process.fit(100)
    scales = process.covar_module.lengthscale.detach()[0]
    assert scales[0] < 0.3 * scales[1:].min()
    with torch.no_grad():
        predicted = process.eval()(points[30:]).mean
    torch.testing.assert_close(predicted, costs[30:], atol=0.1, rtol=0)


def test_the_box_grows_with_successes_and_shrinks_with_failures():
    search = _Search(SETTINGS, 4, seed=1)
    costs = torch.tensor([0.5, 0.4, 0.3, 0.2], dtype=torch.float64)
    for known in (2, 3):
        search._resize(costs[:known])
    assert search._side == 0.8
    search._resize(costs)
    assert search._side == 1.6
    worse = torch.cat([costs, torch.full((5,), 0.9, dtype=torch.float64)])
    for known in range(5, 10):
        search._resize(worse[:known])
    assert search._side == 0.8


def test_candidates_lie_in_the_box_and_keep_most_of_many_coordinates():
    search, size = _Search(SETTINGS, 200, seed=1), 200
    centre = torch.full((size,), 0.5, dtype=torch.float64)
    scales = torch.ones(size, dtype=torch.float64)
    scales[0] = 0.5
    found = search._candidates(centre, scales, 2_000)
    away = (found - centre).abs()
    assert away.max() <= 0.41 and away[:, 0].max() <= 0.21
    moved = (away > 0).sum(1).double()
    assert moved.min() >= 1
    assert moved.mean().item() == pytest.approx(20, abs=1)


def test_the_domain_is_kept():
    task = QuadraticTask()
    TrustRegionBO(reach=0.1, candidates=20, fit_steps=1).run(
        task, Budget(20, 0), seeded()
    )
    assert torch.cat(task.observed).abs().max() <= 0.1 + 1e-6

"""The search of MOEW, against a Gaussian process worked out by hand."""

import numpy as np
import pytest

from baselines.learned_losses.weight_search import NOISE, WeightSearch


def search(dimensions=2, radius=1.0):
    return WeightSearch(dimensions, radius, np.random.default_rng(0))


def test_the_first_vectors_are_uniform_in_the_ball_after_equal_weights():
    equal, *others = search(3, 2.0).ask(4_000)
    assert equal.tolist() == [0, 0, 0]
    found = np.stack(others)
    lengths = np.linalg.norm(found, axis=1)
    assert lengths.max() <= 2
    # Uniform in three dimensions: the cubes of the lengths are uniform, too.
    assert ((lengths / 2) ** 3).mean() == pytest.approx(0.5, abs=0.02)
    assert np.abs(found.mean(0)).max() < 0.06


def test_bounds_are_those_of_the_posterior(monkeypatch):
    # Without a fit of the kernel: exp(-d^2 / 2) and noise 1e-4.
    monkeypatch.setattr(
        "sklearn.gaussian_process.GaussianProcessRegressor._constrained_optimization",
        lambda self, objective, start, bounds: (start, 0.0),
    )
    tried, costs = [np.array([0.0]), np.array([1.0])], [0.2, 0.6]
    candidates = np.array([[0.5], [-1.0]])
    lower, upper = search(1).bounds(tried, costs, candidates)
    within = np.exp(-0.5)
    inverse = np.linalg.inv([[1 + NOISE, within], [within, 1 + NOISE]])
    for place, candidate in enumerate((0.5, -1.0)):
        near = np.exp(-0.5 * (candidate - np.array([0.0, 1.0])) ** 2)
        # Standardised costs are -1 and 1; their deviation is 0.2, their mean 0.4.
        mean = 0.4 + 0.2 * near @ inverse @ np.array([-1.0, 1.0])
        deviation = 0.2 * np.sqrt(1 - near @ inverse @ near)
        assert lower[place] == pytest.approx(mean - deviation, abs=1e-9)
        assert upper[place] == pytest.approx(mean + deviation, abs=1e-9)


def test_the_candidate_of_lowest_bound_is_chosen_and_then_feared(monkeypatch):
    candidates = np.array([[0.0], [0.5], [0.9]])
    means, seen = np.array([0.3, 0.5, 0.4]), []

    def bounds(self, tried, costs, given):
        seen.append(list(costs))
        # A tried candidate is known; the others are open by 0.3.
        open_by = [0.0 if any(c == t for t in tried) else 0.3 for c in given[:, 0]]
        return means - open_by, means + open_by

    one = search(1)
    one.tell([np.array([0.0])], [0.3])
    monkeypatch.setattr(WeightSearch, "uniform", lambda self, count: candidates)
    monkeypatch.setattr(WeightSearch, "bounds", bounds)
    # Bounds .3, .2, .1: the last. It counts as .4 + .3; then .3, .2, .4: the second.
    assert [vector[0] for vector in one.ask(2)] == [0.9, 0.5]
    assert seen == [[0.3], [0.3, pytest.approx(0.7)]]
    assert one.costs == [0.3]


def test_a_bowl_is_searched_to_its_bottom():
    def cost(vector):
        return float(((vector - np.array([0.4, -0.3])) ** 2).sum())

    one = search()
    for _ in range(4):
        asked = one.ask(6)
        one.tell(asked, [cost(vector) for vector in asked])
    assert min(one.costs[:6]) > 2 * min(one.costs)
    assert min(one.costs) < 0.01


def test_flat_costs_are_no_error():
    one = search()
    one.tell(one.ask(3), [0.5, 0.5, 0.5])
    assert len(one.ask(2)) == 2

"""Fine-tuning in lock-step, query times, trajectories as batches."""

import pytest
import torch

from metricopt.algorithm1.trajectories import (
    Rollout,
    Trajectories,
    collect,
    concatenate,
    query_times,
)
from metricopt.errors import BudgetExceededError, ConfigError, ShapeError
from metricopt.methods.result import Budget
from metricopt.tasks.descent import loss_optimizer
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

ROLLOUT = Rollout(steps=12, observations=4)


def collected(task, *, rows=5, seed=0, rollout=ROLLOUT):
    factory = loss_optimizer("sgd", 0.1)
    return collect(task, factory, rollout, rows=rows, generator=seeded(seed))


def test_shapes_and_accounting():
    task = QuadraticTask()
    trajectories = collected(task)
    assert len(trajectories) == 5
    assert trajectories.phi.shape == (5, 12, task.size)
    assert trajectories.losses.shape == (5, 12)
    assert trajectories.steps.shape == trajectories.costs.shape == (5, 4)
    assert trajectories.costs.dtype == torch.float64
    assert task.queries == 5 * 4
    assert task.loss_evaluations == 5 * 12


def test_costs_are_those_of_phi_at_the_observed_steps():
    task = QuadraticTask()
    trajectories = collected(task)
    for row in range(5):
        for place, step in enumerate(trajectories.steps[row].tolist()):
            expected = task.cost(trajectories.phi[row, step][None])
            assert trajectories.costs[row, place] == expected


def test_the_generator_decides_everything():
    first, again, other = (collected(QuadraticTask(), seed=seed) for seed in (1, 1, 2))
    for name in ("phi", "losses", "steps", "costs"):
        assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(getattr(first, name), getattr(other, name))


def test_query_times_are_distinct_sorted_and_cover_every_step():
    times = query_times(500, 9, 3, seeded())
    assert times.shape == (500, 3)
    assert (times[:, 1:] > times[:, :-1]).all()
    shares = torch.bincount(times.flatten(), minlength=9) / 500
    torch.testing.assert_close(shares, torch.full((9,), 1 / 3), rtol=0.0, atol=0.08)
    assert torch.equal(query_times(2, 4, 4, seeded()), torch.arange(4).expand(2, 4))


def test_queries_beyond_the_limit_are_refused_before_they_are_made():
    task = QuadraticTask()
    task.meter.limit = 19
    message = "20 more metric queries after 0 exceed the limit of"
    with pytest.raises(BudgetExceededError, match=message):
        collected(task)
    assert task.queries == 0
    assert task.observed == []


def test_a_rollout_observes_one_to_all_steps_and_a_budget_is_not_negative():
    for observations in (0, 13):
        message = f"1 to 12 observations, got {observations}"
        with pytest.raises(ConfigError, match=message):
            Rollout(steps=12, observations=observations)
    with pytest.raises(ConfigError, match="got queries=-1, gradient_steps=5"):
        Budget(-1, 5)
    assert Budget(0, 0).queries == 0


def test_trajectories_check_their_shapes():
    phi, losses = torch.zeros(2, 5, 3), torch.zeros(2, 5)
    steps, costs = torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, 4)
    message = r"losses must have shape \(2, 5\) .* \(2, 4\)"
    with pytest.raises(ShapeError, match=message):
        Trajectories(phi, losses[:, :4], steps, costs)
    with pytest.raises(ShapeError, match=r"must both have shape \(2, 4\)"):
        Trajectories(phi, losses, steps, costs[:, :3])


def test_concatenate_undoes_rows():
    trajectories = collected(QuadraticTask())
    parts = [
        Trajectories(*(part[index] for part in vars(trajectories).values()))
        for index in (slice(0, 2), torch.tensor([2, 3, 4]))
    ]
    assert [len(part) for part in parts] == [2, 3]
    joined = concatenate(parts)
    for name in ("phi", "losses", "steps", "costs"):
        assert torch.equal(getattr(joined, name), getattr(trajectories, name))

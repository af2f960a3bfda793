"""Fine-tuning in lock-step, query times, rates chosen by the loss."""

import pytest
import torch

from metricopt.errors import (
    BudgetExceededError,
    ConfigError,
    DivergedError,
    ShapeError,
)
from metricopt.observations import Budget, Trajectories, concatenate
from metricopt.trajectories import (
    LEARNING_RATES,
    LinearDecay,
    Rollout,
    collect,
    loss_optimizer,
    query_times,
    run,
    select_rate,
    starts,
)
from tests.metricopt.quadratic_task import QuadraticTask, SteepTask

ROLLOUT = Rollout(steps=12, observations=4)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


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


def test_the_path_equals_a_loop_of_plain_gradient_descent():
    task, rate = QuadraticTask(noise=0.0), 0.3
    start = starts(task.size, 3, 0.5, seeded())
    path, losses = run(task, loss_optimizer("sgd", rate), start, 6, seeded())
    assert path.shape == (3, 7, task.size)
    for row in range(3):
        phi = start[row]
        for step in range(6):
            torch.testing.assert_close(path[row, step], phi)
            gap = phi - task.loss_minimum
            torch.testing.assert_close(losses[row, step], 0.5 * gap.square().sum())
            phi = phi - rate * gap
        torch.testing.assert_close(path[row, 6], phi)


def test_rows_do_not_influence_each_other():
    task = QuadraticTask(noise=0.0)
    start = starts(task.size, 4, 0.5, seeded())
    for name in ("sgd", "adam"):
        factory = loss_optimizer(name, 0.1)
        together, _ = run(task, factory, start, 5, seeded())
        alone = [run(task, factory, row[None], 5, seeded())[0] for row in start]
        torch.testing.assert_close(together, torch.cat(alone))


def test_running_leaves_the_start_alone_and_zero_steps_return_it():
    task, factory = QuadraticTask(), loss_optimizer("adam", 0.1)
    start = starts(task.size, 2, 0.5, seeded())
    before = start.clone()
    run(task, factory, start, 3, seeded())
    assert torch.equal(start, before)
    path, losses = run(task, factory, start, 0, seeded())
    assert torch.equal(path[:, 0], start)
    assert losses.shape == (2, 0)


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


def test_starts_have_the_deviation_asked_for():
    drawn = starts(50, 400, 0.2, seeded())
    assert drawn.std().item() == pytest.approx(0.2, rel=0.02)
    assert torch.equal(starts(3, 2, 0.0, seeded()), torch.zeros(2, 3))


def test_linear_decay_lowers_the_rate_to_zero():
    phi = torch.nn.Parameter(torch.zeros(1, 2))
    optimizer = torch.optim.SGD([phi], lr=0.5)
    stepper, moves = LinearDecay(optimizer, optimizer, 4), []
    for _ in range(4):
        before = phi.detach().clone()
        stepper.zero_grad()
        phi.sum().backward()
        stepper.step()
        moves.append((before - phi.detach())[0, 0].item())
    assert moves == pytest.approx([0.5, 0.375, 0.25, 0.125])
    assert optimizer.param_groups[0]["lr"] == 0.0


def test_the_selected_rate_costs_no_query_and_has_the_least_loss():
    task, rollout = QuadraticTask(), Rollout(steps=20, observations=1)
    rate = select_rate(task, "sgd", rollout, seeded())
    assert task.queries == 0
    assert rate in LEARNING_RATES
    means = {}
    for each in LEARNING_RATES:
        start = starts(task.size, 64, rollout.start_deviation, seeded(1))
        losses = run(task, loss_optimizer("sgd", each), start, 20, seeded(2))[1]
        means[each] = losses[:, 10:].mean().item()
    assert means[rate] < 1.1 * min(means.values())
    assert rate == select_rate(QuadraticTask(), "sgd", rollout, seeded())


def test_rates_that_diverge_are_passed_over():
    rate = select_rate(
        SteepTask(noise=0.0), "sgd", Rollout(steps=20, observations=1), seeded()
    )
    # The loss is 100 times as steep: beyond 0.02 it diverges.
    assert rate == pytest.approx(0.01)


def test_it_says_so_if_every_rate_diverges():
    class Infinite(QuadraticTask):
        def _losses(self, phi, generator):
            return phi.sum(1) * torch.inf

    with pytest.raises(DivergedError, match="the loss diverges at every rate"):
        select_rate(Infinite(), "sgd", ROLLOUT, seeded())


def test_a_diverging_loss_names_the_row():
    class SecondRow(QuadraticTask):
        def _losses(self, phi, generator):
            losses = super()._losses(phi, generator)
            return torch.where(torch.arange(len(phi)) == 1, torch.nan, losses)

    with pytest.raises(DivergedError, match=r"the loss of row 1 is nan at \|phi\| = "):
        collected(SecondRow())


def test_queries_beyond_the_limit_are_refused_before_they_are_made():
    task = QuadraticTask()
    task.query_limit = 19
    with pytest.raises(
        BudgetExceededError, match="20 more metric queries after 0 exceed the limit of"
    ):
        collected(task)
    assert task.queries == 0
    assert task.observed == []


@pytest.mark.parametrize("shape", [(6,), (2, 5), (1, 2, 6)])
def test_a_task_refuses_another_shape(shape):
    task = QuadraticTask()
    with pytest.raises(ShapeError, match=r"phi must have shape \[B, 6\], got \("):
        task.observe(torch.zeros(shape))
    with pytest.raises(ShapeError, match=r"phi must have shape \[B, 6\], got \("):
        task.losses(torch.zeros(shape), seeded())


def test_an_unknown_optimizer_lists_the_known_ones():
    with pytest.raises(
        ConfigError, match="unknown loss optimizer 'lion'; known: sgd, adam"
    ):
        loss_optimizer("lion", 0.1)


@pytest.mark.parametrize("observations", [0, 13])
def test_a_rollout_observes_one_to_all_steps(observations):
    with pytest.raises(ConfigError, match=f"1 to 12 observations, got {observations}"):
        Rollout(steps=12, observations=observations)


def test_a_budget_is_not_negative():
    with pytest.raises(ConfigError, match="got queries=-1, gradient_steps=5"):
        Budget(-1, 5)
    assert Budget(0, 0).queries == 0


def test_trajectories_check_their_shapes():
    phi, losses = torch.zeros(2, 5, 3), torch.zeros(2, 5)
    steps, costs = torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, 4)
    with pytest.raises(
        ShapeError, match=r"losses must have shape \(2, 5\) .* \(2, 4\)"
    ):
        Trajectories(phi, losses[:, :4], steps, costs)
    with pytest.raises(ShapeError, match=r"must both have shape \(2, 4\)"):
        Trajectories(phi, losses, steps, costs[:, :3])


def test_concatenate_undoes_rows():
    trajectories = collected(QuadraticTask())
    parts = [trajectories.rows(slice(0, 2)), trajectories.rows(torch.tensor([2, 3, 4]))]
    assert [len(part) for part in parts] == [2, 3]
    joined = concatenate(parts)
    for name in ("phi", "losses", "steps", "costs"):
        assert torch.equal(getattr(joined, name), getattr(trajectories, name))

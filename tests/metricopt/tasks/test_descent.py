"""Plain fine-tuning with the loss: steps, starts, and the rate the loss chooses."""

import pytest
import torch

from metricopt.errors import ConfigError, DivergedError, ShapeError
from metricopt.process.seeding import Seeds
from metricopt.tasks.descent import (
    LEARNING_RATES,
    LinearDecay,
    loss_optimizer,
    loss_rate,
    run,
    select_rate,
    starts,
)
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask, SteepTask


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
    task = QuadraticTask()
    rate = select_rate(task, "sgd", 20, seeded())
    assert task.queries == 0
    assert rate in LEARNING_RATES
    means = {}
    for each in LEARNING_RATES:
        start = starts(task.size, 64, 0.1, seeded(1))
        losses = run(task, loss_optimizer("sgd", each), start, 20, seeded(2))[1]
        means[each] = losses[:, 10:].mean().item()
    assert means[rate] < 1.1 * min(means.values())
    assert rate == select_rate(QuadraticTask(), "sgd", 20, seeded())


def test_rates_that_diverge_are_passed_over():
    rate = select_rate(SteepTask(noise=0.0), "sgd", 20, seeded())
    # The loss is 100 times as steep: beyond 0.02 it diverges.
    assert rate == pytest.approx(0.01)

    class Infinite(QuadraticTask):
        def _losses(self, phi, generator):
            return phi.sum(1) * torch.inf

    with pytest.raises(DivergedError, match="the loss diverges at every rate"):
        select_rate(Infinite(), "sgd", 12, seeded())


def test_a_diverging_loss_names_the_row():
    class SecondRow(QuadraticTask):
        def _losses(self, phi, generator):
            losses = super()._losses(phi, generator)
            return torch.where(torch.arange(len(phi)) == 1, torch.nan, losses)

    with pytest.raises(DivergedError, match=r"the loss of row 1 is nan at \|phi\| = "):
        run(SecondRow(), loss_optimizer("sgd", 0.1), torch.zeros(2, 6), 3, seeded())


@pytest.mark.parametrize("shape", [(6,), (2, 5), (1, 2, 6)])
def test_a_task_refuses_another_shape(shape):
    task = QuadraticTask()
    message = r"phi must have shape \[B, 6\], got \("
    with pytest.raises(ShapeError, match=message):
        task.observe(torch.zeros(shape))
    with pytest.raises(ShapeError, match=message):
        task.losses(torch.zeros(shape), seeded())


def test_an_unknown_optimizer_lists_the_known_ones():
    message = "unknown optimizer of phi 'lion'; known: adam, momentum, .*sgd"
    with pytest.raises(ConfigError, match=message):
        loss_optimizer("lion", 0.1)


class Counted(QuadraticTask):
    """A quadratic task that notes the generator state of every call for losses."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.calls = 0

    def _losses(self, phi, generator):
        self.calls += 1
        return super()._losses(phi, generator)


def test_the_rate_of_a_task_is_found_once_by_seeds_of_its_own():
    task = Counted()
    task.seeds = Seeds("problem", 3)
    rate, calls = loss_rate(task, "sgd", 20), task.calls
    expected = select_rate(
        QuadraticTask(), "sgd", 20, Seeds("problem", 3).generator("rate", "sgd")
    )
    assert rate == expected == task.rates["sgd", 20, 0.1]
    assert loss_rate(task, "sgd", 20) == rate
    assert task.calls == calls == 20 * len(LEARNING_RATES)
    assert task.queries == 0
    loss_rate(task, "adam", 20)
    loss_rate(task, "sgd", 10)
    assert set(task.rates) == {("sgd", 20, 0.1), ("adam", 20, 0.1), ("sgd", 10, 0.1)}


def test_tasks_that_share_rates_look_for_each_once():
    first, second = Counted(), Counted()
    second.rates = first.rates
    assert loss_rate(first, "sgd", 5) == loss_rate(second, "sgd", 5)
    assert second.calls == 0
    # The rate for no step is that for one.
    expected = loss_rate(first, "sgd", 1)
    assert loss_rate(first, "sgd", 0) == expected == first.rates["sgd", 1, 0.1]

"""A task that counts and keeps every observation, and knows the best on observe."""

import pytest
import torch
from torch import nn

import metricopt
from metricopt.errors import BudgetExceededError, MetricError
from metricopt.metrics.base import from_cost
from metricopt.process.seeding import Seeds
from metricopt.reading.callables import make_metric
from metricopt.tasks.network_task import NetworkTask
from metricopt.tasks.recorded_task import RecordedTask
from tests.metricopt import adapter_networks
from tests.metricopt.counted_metric import Counted
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask


def recorded(metric: Counted, **settings: object) -> RecordedTask:
    generator = seeded(0)
    inputs, targets = torch.randn(8, 6, generator=generator), torch.arange(8) % 3
    examples = metricopt.Split(inputs, targets)
    inner = NetworkTask(
        metricopt.auto_adapter(adapter_networks.mlp(), inputs),
        nn.CrossEntropyLoss(),
        make_metric(metric, higher_is_better=True),
        train=examples,
        observe=examples,
    )
    return RecordedTask(inner, **settings)


def test_queries_on_train_are_counted_but_never_best():
    made: list[int] = []
    metric = Counted()
    task = recorded(metric, on_query=made.append)
    cost = task.observe_untouched()
    assert cost == pytest.approx(1 - metric.values[0])
    best = task.best
    costs = task.observe_train(torch.zeros(2, task.size), torch.Generator())
    assert costs.tolist() == pytest.approx([1 - value for value in metric.values[-2:]])
    assert task.best is best
    assert (task.measured, task.queries, sum(made)) == (3, 3, 3)


def test_the_untouched_network_costs_a_query_like_any_other():
    metric = Counted()
    task = recorded(metric)
    task.observe_untouched()
    assert task.queries == len(metric.values) == 1
    task.meter.limit = 1
    with pytest.raises(BudgetExceededError, match="1 more metric queries after 1"):
        task.observe_untouched()
    assert len(metric.values) == 1


def test_any_task_can_be_wrapped_and_shares_what_it_counts():
    inner = QuadraticTask()
    inner.seeds = Seeds("inner")
    task = RecordedTask(inner)
    assert (task.meter, task.seeds) == (inner.meter, inner.seeds)
    assert task.rates is inner.rates
    phi = torch.randn(5, task.size, generator=seeded(1))
    costs = task.observe(phi)
    assert torch.equal(costs, inner.cost(phi))
    assert inner.queries == task.queries == task.measured == 5
    inner.observe(phi[:2])
    assert (task.queries, task.measured) == (7, 5)
    least, best = task.best
    assert torch.equal(task.phi, phi)
    assert torch.equal(task.costs, costs)
    assert least == costs.min()
    assert torch.equal(best[0], phi[costs.argmin()])
    one, other = (each.losses(phi, seeded(2)) for each in (task, inner))
    assert torch.equal(one, other)


@pytest.mark.parametrize(("rows", "measured"), [(None, 0), (1, 2), (2, 2)])
def test_a_failure_loses_no_more_than_the_rows_observed_at_a_time(rows, measured):
    metric = Counted(fails_at=3)
    task = recorded(metric, rows=rows)
    phi = torch.randn(4, task.size, generator=seeded(0))
    with pytest.raises(MetricError, match="no judge today"):
        task.observe(phi)
    assert task.measured == measured
    assert task.queries == 0
    assert (task.best is None) == (measured == 0)
    if task.best is not None:
        cost = torch.tensor(task.best[0], dtype=torch.float64)
        black_box = make_metric(metric, higher_is_better=True)
        assert from_cost(black_box, cost) == pytest.approx(max(metric.values))


def test_evaluations_beside_the_task_are_counted_and_limited():
    made: list[int] = []
    task = RecordedTask(QuadraticTask(), on_query=made.append)
    task.meter.limit = 3
    task.count(2)
    assert (task.queries, task.measured, made) == (2, 2, [2])
    with pytest.raises(BudgetExceededError, match="2 more metric queries after 2"):
        task.count(2)
    assert (task.queries, task.measured) == (2, 2)

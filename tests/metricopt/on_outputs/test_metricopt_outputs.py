"""MetricOpt on outputs: what a dozen queries find, and when it finds nothing."""

from functools import cache

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.methods.archive import Archive
from metricopt.methods.budget import Budget
from metricopt.methods.random_search import RandomSearch
from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
from tests.metricopt.on_outputs.outputs_task import TEST, digits_task, judged
from tests.metricopt.quadratic_task import QuadraticTask


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@cache
def searched(metric):
    """A task, and what two searches of sixteen queries found on it."""
    task = digits_task(metric)
    return task, MetricOptOutputs().run(task, Budget(16, 0), seeded(), rows=2)


@pytest.mark.parametrize("metric", ["f-macro", "mcr"])
def test_sixteen_queries_improve_a_metric_on_other_data(metric):
    task, found = searched(metric)
    assert 2 * found.queries == task.queries <= 32
    assert found.notes["identified"] == 1
    assert all(each.gain > each.error for each in found.evidence)
    sign = 1 if metric == "f-macro" else -1
    before = judged(task, metric, torch.zeros(1, task.size))
    assert sign * (judged(task, metric, found.phi) - before) > 0.05


def test_random_search_needs_more():
    _, ours = searched("f-macro")
    task = digits_task("f-macro")
    other = RandomSearch().run(task, Budget(160, 0), seeded(), rows=2)
    assert judged(task, "f-macro", ours.phi) > judged(task, "f-macro", other.phi) + 0.02


def test_a_group_can_be_left_out():
    task = digits_task("worst-class-error")
    method = MetricOptOutputs(left_out=("decisions: sorted",))
    assert method.run(task, Budget(16, 0), seeded()).notes["identified"] in (0, 1)
    statistics = method._statistics(task)
    searches = method._searches(statistics, Archive(task, Budget(2, 0), 1), seeded())
    assert "decisions: sorted" not in searches[0].groups


@pytest.mark.parametrize("name", ["sorted", "decisions: rates"])
def test_a_group_that_is_not_there_or_needed_cannot_be_left_out(name):
    task = digits_task("mcr")
    with pytest.raises(ConfigError, match="left_out must name groups of decisions"):
        MetricOptOutputs(left_out=(name,)).run(task, Budget(16, 0), seeded())


def quiet(outputs, targets):
    """A function of no statistic here: better, the smaller the outputs are."""
    return float(1 / (1 + outputs.square().mean()))


def test_what_statistics_do_not_explain_is_handed_over_and_checked():
    task = digits_task(Rough(quiet), higher_is_better=True)
    found = MetricOptOutputs().run(task, Budget(60, 0), seeded())
    assert found.notes["identified"] == 0
    assert found.queries == task.queries <= 60
    assert "5 parts of the observe split" in found.evidence[0].reason


class Rough:
    """A metric to which every phi adds a chance of its own."""

    def __init__(self, metric):
        self.metric = metric

    def __call__(self, outputs, targets):
        chance = (1e4 * outputs.double().sum()).sin().item()
        return min(max(self.metric(outputs, targets) + 0.2 * chance, 0), 1)


def test_a_constant_metric_leaves_the_network_alone():
    task = digits_task(lambda outputs, targets: 0.5, higher_is_better=True)
    found = MetricOptOutputs().run(task, Budget(14, 0), seeded(), rows=2)
    assert not found.phi.any()
    assert "the same at all" in found.evidence[0].reason


@pytest.mark.parametrize("queries", [1, 2, 3, 7])
def test_few_queries_are_no_evidence(queries):
    task = digits_task("f-macro")
    found = MetricOptOutputs().run(task, Budget(queries, 0), seeded())
    assert found.queries == task.queries <= queries
    assert not found.phi.any()
    assert found.evidence[0].reason.endswith("The untouched network is kept.")


def test_a_gain_that_is_not_shown_is_not_taken():
    # Sixty examples show little.
    few = type(TEST)(TEST.inputs[:60], TEST.targets[:60])
    task = digits_task("mcr", observe=few)
    found = MetricOptOutputs().run(task, Budget(16, 0), seeded(), rows=2)
    before = judged(task, "mcr", torch.zeros(1, task.size))
    assert judged(task, "mcr", found.phi) < before + 0.02


def test_too_few_examples_are_not_cross_fitted():
    few = type(TEST)(TEST.inputs[:20], TEST.targets[:20])
    found = MetricOptOutputs().run(
        digits_task("mcr", observe=few), Budget(16, 0), seeded()
    )
    assert not found.phi.any()
    assert "20 examples is too small to cross-fit" in found.evidence[0].reason


def test_it_suits_tasks_with_statistics_alone():
    assert MetricOptOutputs().suits(digits_task("mcr"))
    assert not MetricOptOutputs().suits(QuadraticTask())


def test_a_budget_without_queries_is_refused():
    with pytest.raises(ConfigError, match="budget of at least 1 query"):
        MetricOptOutputs().run(digits_task("mcr"), Budget(0, 0), seeded())

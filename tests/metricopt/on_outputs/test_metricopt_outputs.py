"""MetricOpt on outputs: what a dozen queries find, and when it finds nothing."""

from functools import cache

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.methods.controls import RandomSearch
from metricopt.methods.result import Archive, Budget
from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
from metricopt.on_outputs.snapshots import PortfolioSettings
from tests.metricopt.drawn import seeded
from tests.metricopt.on_outputs.outputs_task import digits_task, few, judged
from tests.metricopt.quadratic_task import QuadraticTask

BRIEF = PortfolioSettings(marks=(5,))
"""Short trainings with losses, where nothing depends on what they find."""


@cache
def searched(metric, rows):
    """A task, and what searches of sixteen queries found on it."""
    task = digits_task(metric)
    return task, MetricOptOutputs().run(task, Budget(16, 0), seeded(), rows=rows)


@pytest.mark.parametrize(("metric", "rows"), [("f-macro", 2), ("mcr", 1)])
def test_sixteen_queries_improve_a_metric_on_other_data(metric, rows):
    task, found = searched(metric, rows)
    assert rows * found.queries == task.queries <= rows * 16
    assert found.notes["identified"] == 1
    assert all(each.gain > each.error for each in found.evidence)
    sign = 1 if metric == "f-macro" else -1
    before = judged(task, metric, torch.zeros(1, task.size))
    assert sign * (judged(task, metric, found.phi) - before) > 0.05


def test_random_search_needs_more():
    _, ours = searched("f-macro", 2)
    task = digits_task("f-macro")
    other = RandomSearch().run(task, Budget(160, 0), seeded(), rows=2)
    assert judged(task, "f-macro", ours.phi) > judged(task, "f-macro", other.phi) + 0.02


def test_a_group_can_be_left_out():
    task = digits_task("worst-class-error")
    method = MetricOptOutputs(left_out=("decisions: sorted",), portfolio=BRIEF)
    found = method.run(task, Budget(9, 0), seeded())
    assert found.queries <= 9
    assert "too few to tell what explains the metric" in found.evidence[0].reason
    statistics = method._statistics(task)
    searches = method._searches(statistics, Archive(task, Budget(2, 0), 1), seeded())
    assert "decisions: sorted" not in searches[0].groups
    # Nor can one that is not there, or is needed.
    for name in ("sorted", "decisions: rates"):
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
    method = MetricOptOutputs(portfolio=BRIEF)
    found = method.run(task, Budget(14, 0), seeded(), rows=2)
    assert not found.phi.any()
    assert "the same at all" in found.evidence[0].reason


@pytest.mark.parametrize("queries", [1, 2, 3, 7])
def test_few_queries_are_no_evidence(queries):
    task = digits_task("f-macro")
    method = MetricOptOutputs(portfolio=BRIEF)
    found = method.run(task, Budget(queries, 0), seeded())
    assert found.queries == task.queries <= queries
    assert not found.phi.any()
    assert found.evidence[0].reason.endswith("The untouched network is kept.")


def test_a_gain_that_is_not_shown_is_not_taken():
    # Sixty examples show little.
    task = digits_task("mcr", observe=few(60))
    found = MetricOptOutputs().run(task, Budget(16, 0), seeded(), rows=2)
    before = judged(task, "mcr", torch.zeros(1, task.size))
    assert judged(task, "mcr", found.phi) < before + 0.02


def test_too_few_examples_are_not_cross_fitted():
    task = digits_task("mcr", observe=few(20))
    method = MetricOptOutputs(portfolio=BRIEF)
    found = method.run(task, Budget(16, 0), seeded())
    assert not found.phi.any()
    assert "20 examples is too small to cross-fit" in found.evidence[0].reason


def test_it_suits_tasks_with_statistics_and_budgets_with_a_query():
    task = digits_task("mcr")
    assert MetricOptOutputs().suits(task)
    assert not MetricOptOutputs().suits(QuadraticTask())
    with pytest.raises(ConfigError, match="budget of at least 1 query"):
        MetricOptOutputs().run(task, Budget(0, 0), seeded())

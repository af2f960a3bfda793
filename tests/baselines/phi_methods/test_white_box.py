"""The white box: formulas are those of the metrics, smooth ones have slopes."""

import pytest
import torch

from baselines.phi_methods.white_box import WhiteBox, formula_cost
from metricopt.errors import ConfigError
from metricopt.methods.result import Budget
from metricopt.metrics.base import METRICS, to_cost
from metricopt.metrics.confusion import CountMetric
from metricopt.metrics.counted import CostWeightedError
from metricopt.statistics.confusion import ConfusionStatistics
from tests.contracts.outputs_task import OutputsTask, seeded

COSTS = ((0.0, 1.0, 0.2), (0.5, 0.0, 0.1), (0.3, 0.9, 0.0))
FORMULAS = [name for name in METRICS if issubclass(METRICS.get(name), CountMetric)]
BINARY = [name for name in FORMULAS if METRICS.get(name).binary]


def problem(columns):
    classes = max(columns, 2)
    outputs = torch.randn(4, 90, columns, generator=seeded())
    targets = (torch.arange(90) % (classes + 1)).clamp_max(classes - 1)
    return outputs, targets


@pytest.mark.parametrize(
    ("name", "columns"),
    [(n, c) for n in FORMULAS for c in (1, 2, 5) if c < 5 or n not in BINARY],
)
def test_the_formula_of_exact_statistics_is_the_metric(name, columns):
    outputs, targets = problem(columns)
    metric = WhiteBox(formula=name).metric()
    groups = ConfusionStatistics().exact(outputs, targets)
    expected = to_cost(metric, metric.values(outputs, targets))
    torch.testing.assert_close(formula_cost(metric, groups, targets), expected)


def test_a_matrix_of_costs_is_a_formula_too():
    outputs, targets = problem(3)
    metric = WhiteBox(costs=COSTS).metric()
    expected = CostWeightedError(torch.tensor(COSTS)).values(outputs, targets)
    groups = ConfusionStatistics().exact(outputs, targets)
    torch.testing.assert_close(formula_cost(metric, groups, targets), expected)


@pytest.mark.parametrize("name", ["mcr", "f-macro", "jaccard-macro", "g-mean"])
def test_smooth_statistics_have_the_slope_of_the_formula(name):
    outputs, targets = problem(3)
    metric, kind = WhiteBox(formula=name).metric(), ConfusionStatistics()
    logits = outputs[:1].double().requires_grad_()

    def cost(logits):
        return formula_cost(metric, kind.smooth(logits, targets), targets)

    assert torch.autograd.gradcheck(cost, (logits,))


@pytest.mark.parametrize(
    "settings",
    [{"formula": "mcr"}, {"formula": "f-macro"}, {"costs": COSTS}],
)
def test_it_descends_its_formula_without_a_query(settings):
    method = WhiteBox(rates=(0.1,), steps=60, **settings)
    metric = method.metric()
    task = OutputsTask("f-macro")
    found = method.run(task, Budget(0, 0), seeded(), rows=2)
    assert found.queries == task.queries == 0
    statistics = task.statistics.of_kind(ConfusionStatistics())

    def cost(phi):
        return formula_cost(metric, statistics.exact(phi), statistics.targets)

    before = cost(torch.zeros(1, task.size)).item()
    assert cost(found.phi).max() < 0.9 * before


def test_formulas_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="a metric of the confusion matrix, got 'auc"):
        WhiteBox(formula="aucpr").metric()
    groups = ConfusionStatistics().exact(*problem(3))
    targets = problem(3)[1]
    for settings in ({"formula": "f1"}, {"costs": ((0.0, 1.0), (1.0, 0.0))}):
        metric = WhiteBox(**settings).metric()
        with pytest.raises(ConfigError, match="is not one of 3 classes"):
            formula_cost(metric, groups, targets)

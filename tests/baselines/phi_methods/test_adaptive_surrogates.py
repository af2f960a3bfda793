"""Adaptive surrogates: exact weights of a linear metric, and steps that use them."""

import pytest
import torch

from baselines.phi_methods.adaptive_surrogates import (
    AdaptiveSurrogates,
    surrogate_weights,
)
from baselines.phi_methods.class_rates import class_errors, confusion_rates
from metricopt.methods.cma_es import CMAES
from metricopt.methods.result import Budget
from metricopt.metrics.confusion import confusion_matrices
from metricopt.statistics.confusion import ConfusionStatistics
from tests.contracts.outputs_task import OutputsTask, seeded
from tests.metricopt.quadratic_task import QuadraticTask


@pytest.mark.parametrize("here", [0, 3])
def test_the_weights_of_a_linear_metric_are_exact(here):
    rates = torch.rand(8, 4, generator=seeded(), dtype=torch.float64)
    weights = torch.tensor([0.4, 0.0, 0.1, 0.25], dtype=torch.float64)
    costs = 0.05 + rates @ weights
    found = surrogate_weights(rates, costs, here, ridge=1e-12)
    torch.testing.assert_close(found, weights, atol=1e-6, rtol=0)


def test_weights_are_never_negative_and_near_points_count_more():
    rates = torch.rand(9, 3, generator=seeded(), dtype=torch.float64)
    costs = 1 - rates @ torch.tensor([0.0, 0.0, 0.9], dtype=torch.float64)
    assert (surrogate_weights(rates, costs, 0, ridge=1e-6) >= 0).all()
    # The slope is 1 near 0 and 0 far away.
    line = torch.linspace(0, 4, 21, dtype=torch.float64)[:, None]
    bent = line[:, 0].clamp_max(1.0) / 4
    slope = surrogate_weights(line, bent, 0, ridge=1e-9).item()
    plain = torch.linalg.lstsq(line, bent[:, None]).solution.item()
    assert plain < slope < 0.25


def test_one_point_says_nothing():
    one = torch.rand(1, 3, dtype=torch.float64)
    found = surrogate_weights(one, one[:, 0], 0, ridge=1e-4)
    assert found.tolist() == [0.0] * 3


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_rates_are_those_of_the_confusion_matrix(columns):
    classes = max(columns, 2)
    outputs = torch.randn(3, 60, columns, generator=seeded())
    targets = torch.arange(60) % classes
    groups = ConfusionStatistics().exact(outputs, targets)
    counts = confusion_matrices(outputs, targets)
    expected = counts / counts.sum(2, keepdim=True)
    torch.testing.assert_close(confusion_rates(groups), expected)
    errors = 1 - expected.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(class_errors(groups), errors)


def test_it_gets_further_than_cma_es_with_as_many_queries():
    task = OutputsTask("mcr")
    found = AdaptiveSurrogates().run(task, Budget(15, 0), seeded(), rows=3)
    plain = CMAES().run(task, Budget(15, 0), seeded(), rows=3)
    assert task.cost(found.phi).max() < 0.9 * task.cost(plain.phi).min()


def test_a_task_without_statistics_does_not_suit_it():
    assert not AdaptiveSurrogates().suits(QuadraticTask())
    assert AdaptiveSurrogates().suits(OutputsTask())

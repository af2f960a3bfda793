"""Offsets by CMA-ES: a known optimum, and the account of queries."""

import pytest
import torch

from baselines.post_hoc.cma_offsets import OffsetEvolution, evolve_offsets
from metricopt.errors import BudgetExceededError
from tests.baselines.post_hoc.calibrated import (
    LinearMetric,
    best_decisions,
    calibrated,
    searched,
)


def evolve(outputs, targets, metric, *, queries=60, seed=0, limit=None):
    found = searched(
        evolve_offsets,
        outputs,
        targets,
        metric,
        limit=limit,
        search=OffsetEvolution(max_queries=queries),
        generator=torch.Generator().manual_seed(seed),
    )
    assert found.queries == metric.calls
    return found


@pytest.mark.parametrize("higher", [True, False])
def test_the_best_decisions_for_a_linear_metric_are_found(higher):
    gains = [1.0, 2.6, 6.2]
    outputs, targets = calibrated(3)
    metric = LinearMetric(gains, higher_is_better=higher)
    found = evolve(outputs, targets, metric, queries=120)
    best = 10.0 * torch.nn.functional.one_hot(best_decisions(outputs, gains), 3)
    assert found.best.value == pytest.approx(metric.value(best, targets))
    assert metric.value(found.best.shift(outputs), targets) == found.best.value


@pytest.mark.parametrize("queries", [1, 7, 20])
def test_all_queries_are_made_and_every_improvement_is_noted(queries):
    outputs, targets = calibrated(3)
    metric = LinearMetric([1.0, 3.0, 9.0])
    found = evolve(outputs, targets, metric, queries=queries)
    assert found.queries == queries
    values = [each.value for each in found.trace]
    assert values == sorted(set(values))
    assert values[0] == metric.value(outputs, targets)
    assert (len(values) > 1) == (queries > 1)


def test_one_logit_counts_as_two_classes_and_the_generator_decides():
    outputs, targets = calibrated(2)
    single = outputs[:, 1:] - outputs[:, :1]
    found = evolve(single, targets, LinearMetric([1.0, 4.0]))
    again = evolve(outputs, targets, LinearMetric([1.0, 4.0]))
    other = evolve(outputs, targets, LinearMetric([1.0, 4.0]), seed=1)
    assert found.best.value == again.best.value
    torch.testing.assert_close(found.best.offsets, again.best.offsets)
    assert not torch.equal(other.best.offsets, again.best.offsets)


def test_limits_are_kept():
    outputs, targets = calibrated(3)
    with pytest.raises(BudgetExceededError, match="exceed the limit of 5"):
        evolve(outputs, targets, LinearMetric([1.0, 1.0, 2.0]), limit=5)

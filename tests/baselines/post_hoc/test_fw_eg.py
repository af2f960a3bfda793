"""FW-EG: exact gains of a linear metric, and the account of queries."""

import pytest
import torch

from baselines.post_hoc.fw_eg import FrankWolfe, Mixture, diagonal, frank_wolfe
from metricopt.errors import ConfigError
from metricopt.reading.callables import make_metric
from tests.baselines.post_hoc.calibrated import (
    LinearMetric,
    best_decisions,
    calibrated,
    searched,
)


def elicit(outputs, targets, metric, *, seed=0, **settings):
    return searched(
        frank_wolfe,
        outputs,
        targets,
        metric,
        search=FrankWolfe(**settings),
        generator=torch.Generator().manual_seed(seed),
    )


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("gains", [[1.0, 2.6], [1.0, 2.6, 6.2]])
def test_the_gains_of_a_linear_metric_are_exact_after_one_iteration(gains, higher):
    outputs, targets = calibrated(len(gains))
    metric = LinearMetric(gains, higher_is_better=higher)
    found = elicit(outputs, targets, metric, iterations=1)
    elicited = found.best.mixture.gains[-1]
    expected = torch.tensor(gains, dtype=torch.float64) / max(gains)
    torch.testing.assert_close(elicited, expected)
    assert found.best.mixture.weights.tolist() == [0.0, 1.0]
    assert torch.equal(
        found.best.mixture.decide(outputs), best_decisions(outputs, gains)
    )
    assert found.queries == metric.calls == 1 + len(gains) + 1


def test_a_better_f_measure_is_found_and_its_value_is_that_of_the_classifier():
    outputs, targets = calibrated(2)
    single = outputs[:, 1:] - outputs[:, :1] - 1.5
    metric = make_metric("f1")
    found = elicit(single, targets, metric, max_queries=25)
    assert found.queries == 25
    assert found.best.value > metric.value(single, targets) + 0.02
    assert metric.value(found.best.mixture.shift(single), targets) == found.best.value
    values = [each.value for each in found.trace]
    assert values == sorted(set(values))
    assert values[0] == metric.value(single, targets)
    again = elicit(single, targets, metric, max_queries=25)
    assert torch.equal(again.best.mixture.gains, found.best.mixture.gains)


def test_a_mixture_draws_its_iterates_as_often_as_it_says():
    outputs = torch.zeros(40_000, 2)
    gains = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    mixture = Mixture(gains[:1], torch.ones(1, dtype=torch.float64), 3)
    assert not mixture.decide(outputs).any()
    mixed = mixture.towards(gains[1], 0.25)
    assert mixed.weights.tolist() == [0.75, 0.25]
    assert mixed.decide(outputs).double().mean().item() == pytest.approx(0.25, abs=0.01)


def test_the_diagonal_is_that_of_the_confusion_matrix():
    decisions, targets = torch.tensor([[0, 1, 1, 2]]), torch.tensor([0, 1, 2, 2])
    assert diagonal(decisions, targets, 3).tolist() == [[0.25, 0.25, 0.25]]


def test_a_limit_decides_the_iterations():
    outputs, targets = calibrated(3)
    metric = LinearMetric([1.0, 2.0, 4.0])
    for limit, made in ((5, 5), (8, 5), (9, 9)):
        found = elicit(outputs, targets, metric, max_queries=limit)
        assert found.queries == made
    with pytest.raises(ConfigError, match="at least 5 queries for 3 classes"):
        elicit(outputs, targets, metric, max_queries=4)
    with pytest.raises(ConfigError, match=r"edited in \(0, 1\]"):
        elicit(outputs, targets, metric, edited=0.0)

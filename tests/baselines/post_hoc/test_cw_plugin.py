"""CWPlugin: the best decisions for metrics that are linear in the diagonal."""

import pytest
import torch

from baselines.post_hoc.cw_plugin import PairSearch, pairwise_weights
from metricopt.errors import ConfigError
from metricopt.reading.callables import make_metric
from tests.baselines.post_hoc.calibrated import (
    LinearMetric,
    best_decisions,
    calibrated,
    searched,
)


def weigh(outputs, targets, metric, **settings):
    search = PairSearch(**settings)
    return searched(pairwise_weights, outputs, targets, metric, search=search)


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("gains", [[1.0, 2.6], [1.0, 2.6, 6.2], [5.2, 1.0, 1.9]])
def test_a_linear_metric_is_made_best(gains, higher):
    outputs, targets = calibrated(len(gains))
    metric = LinearMetric(gains, higher_is_better=higher)
    found = weigh(outputs, targets, metric, candidates=400)
    best = 10.0 * torch.nn.functional.one_hot(
        best_decisions(outputs, gains), len(gains)
    )
    assert found.queries == metric.calls == 2 + 400 * (len(gains) - 1)
    assert found.best.value == pytest.approx(metric.value(best, targets), abs=2e-3)
    assert found.best.value != metric.value(outputs, targets)


def test_a_pair_is_judged_as_if_there_were_no_other_class():
    outputs, targets = calibrated(3)
    seen = []

    def spy(judged, labels):
        pair = judged.argmax(1).unique().tolist()
        seen.append((pair, labels.unique().tolist()))
        return 0.5

    found = weigh(
        outputs, targets, make_metric(spy, higher_is_better=True), candidates=3
    )
    # Label 0 is as frequent as the others, and first.
    assert seen[1:4] == [([0, 1], [0, 1])] * 3
    assert seen[4:7] == [([0, 2], [0, 2])] * 3
    # Of equal values, the one at equal weights: nothing moves.
    assert found.best.offsets.tolist() == [0.0] * 3


@pytest.mark.parametrize(("limit", "made"), [(4, 4), (5, 4), (20, 20), (21, 20)])
def test_a_limit_is_divided_among_the_pairs(limit, made):
    outputs, targets = calibrated(3)
    metric = LinearMetric([1.0, 2.0, 4.0])
    found = weigh(outputs, targets, metric, max_queries=limit)
    assert found.queries == metric.calls == made
    with pytest.raises(ConfigError, match="at least 4 queries for 3 classes"):
        weigh(outputs, targets, metric, max_queries=3)


def test_equal_weights_are_kept_where_the_result_is_no_better():
    outputs, targets = calibrated(3)
    found = weigh(outputs, targets, LinearMetric([1.0, 1.0, 1.0]), candidates=15)
    assert found.best.value == LinearMetric([1.0, 1.0, 1.0]).value(outputs, targets)
    assert len(found.trace) == 1

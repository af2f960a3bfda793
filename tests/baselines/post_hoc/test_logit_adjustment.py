"""Logit adjustment: the same as by hand, within its queries, on rare digits."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import balanced_accuracy_score, f1_score

from baselines.post_hoc.logit_adjustment import LogitAdjustment, adjust_logits
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.callables import make_metric
from tests.baselines.post_hoc.calibrated import LinearMetric, searched
from tests.baselines.post_hoc.fitted import rare_digits, tumours


def adjusted(outputs, targets, metric, **settings):
    search = LogitAdjustment(**settings)
    return searched(adjust_logits, outputs, targets, metric, search=search)


def test_equals_the_best_tau_by_hand():
    outputs, targets = rare_digits()
    log_p, y = log_softmax(outputs.numpy(), 1), targets.numpy()
    prior = np.log(np.bincount(y) / len(y))
    values = [
        f1_score(y, (log_p - tau * prior).argmax(1), average="macro")
        for tau in np.arange(11) * 0.2
    ]
    found = adjusted(outputs, targets, make_metric("f-macro"))
    assert found.queries == 11
    assert found.best.value == pytest.approx(max(values))
    assert found.best.value > values[0] + 0.01
    assert found.best.queries == int(np.argmax(values)) + 1


def test_equal_shares_suit_balanced_accuracy():
    outputs, targets = tumours()
    found = adjusted(outputs, targets, make_metric("g-mean"), step=1.0, max_queries=2)
    y = targets.numpy()
    before = balanced_accuracy_score(y, (outputs[:, 0] > 0).long().numpy())
    decided = found.best.shift(outputs).argmax(1).numpy()
    assert balanced_accuracy_score(y, decided) > before


def test_one_query_is_of_the_logits_as_they_are():
    outputs, targets = rare_digits()
    metric = LinearMetric([1.0, 2.0, 5.0, 9.0])
    found = adjusted(outputs, targets, metric, max_queries=1)
    assert found.queries == metric.calls == 1
    assert not found.best.offsets.any()


def test_bad_input_is_refused():
    outputs, targets = rare_digits()
    with pytest.raises(ConfigError, match="step"):
        LogitAdjustment(step=0.0)
    with pytest.raises(ShapeError, match="class scores"):
        adjusted(outputs[:, 0], targets, make_metric("f-macro"))

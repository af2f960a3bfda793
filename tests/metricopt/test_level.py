"""How much evidence of a gain is asked for."""

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

import metricopt

INPUTS, LABELS = load_breast_cancer(return_X_y=True)
ODDS = (
    LogisticRegression()
    .fit(scale(INPUTS)[::2, :2], LABELS[::2])
    .decision_function(scale(INPUTS)[1::2, :2])
)
SAID = "phi is moved although this interval holds 0"


def tuned(**settings):
    return metricopt.tune(
        ODDS - 1.6, LABELS[1::2], "accuracy", progress=False, **settings
    )


def test_a_move_that_is_not_significant_is_said_and_can_be_refused():
    found = tuned()
    assert found.offsets.any()
    assert found.expected.low < 0 < found.expected.value
    assert SAID in found.summary()
    strict = tuned(level=1.96)
    assert not strict.offsets.any()
    assert strict.expected is None and SAID not in strict.summary()


def test_a_level_needs_a_method_that_asks_for_evidence():
    with pytest.raises(metricopt.ConfigError, match="how much evidence of a gain"):
        tuned(level=1.0, method="cma-es", no_harm=False)
    with pytest.raises(metricopt.ConfigError, match=r"finetune needs level in"):
        tuned(level=-1.0)

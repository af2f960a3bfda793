"""Constraints that cannot be meant are refused in a sentence, before any query."""

import pytest

import metricopt
from metricopt import (
    ConfigError,
    MetricError,
    at_least,
    at_most,
    finetune,
    make_metric,
)
from tests.robustness.refused import given, refusal

BOUNDS = {
    "text": (("f1", "0.9"), "a bound must be a finite number, got '0.9'; write"),
    "nan": (("f1", float("nan")), "a bound must be a finite number, got nan"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_a_number(name):
    arguments, message = BOUNDS[name]
    with pytest.raises(ConfigError, match=message):
        at_least(*arguments)
    with pytest.raises(ConfigError, match=message):
        at_most(*arguments)


REFUSED = {
    "no list": ({"constraints": at_least("f1", 0.5)}, "constraints must be a list of"),
    "pairs": ({"constraints": [("f1", 0.5)]}, "constraints must be a list of at_least"),
    "confidence": ({"confidence": 1.0}, r"confidence in \(0, 1\), got confidence=1.0"),
    "key of nothing": ({"objective": 3}, "objective must be a key of the metric's"),
    "key of a number": (
        {"metric": "mcr", "objective": "recall"},
        "objective='recall' names a key of the dictionary that a function of your own",
    ),
    "unknown name": (
        {"metric": "mcr", "constraints": [at_least("precison", 0.5)]},
        "unknown metric 'precison'",
    ),
    "beyond its range": (
        {"metric": "mcr", "constraints": [at_least("f-macro", 90)]},
        r"the bound 90 on 'f-macro' is outside of its range \[0, 1\]",
    ),
    "key or metric": (
        {"constraints": [at_least("f-macro", 0.5)]},
        "'f-macro' may be a metric or a key of what the metric function returns: pass "
        r"objective=, .* else make_metric\('f-macro'\)",
    ),
    "another kind of outputs": (
        {"metric": "mcr", "constraints": [at_least("recall@1", 0.5)]},
        "'recall@1' reads embeddings, but 'mcr' reads scores",
    ),
    "what is known": (
        {
            "constraints": [at_least(make_metric("f-macro"), 0.5)],
            "known": metricopt.KnownStatistics({}, None),
        },
        "leave out known= or constraints=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_constraints_are_refused_before_a_query(name):
    changes, message = REFUSED[name]
    assert refusal(ConfigError, message, **changes).partial is None


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (0.5, "got a float"),
        ({"recall": 0.5}, "got the keys 'recall'"),
        ({"mean": "much"}, "must return a number, got str 'much'"),
    ],
)
def test_a_dictionary_without_the_number_is_refused_at_the_first_query(returned, got):
    def several(outputs, targets):
        return returned

    with pytest.raises(MetricError, match=got):
        finetune(
            **given(
                metric=several,
                objective="mean",
                higher_is_better=True,
                constraints=[at_least("recall", 0.2)],
            )
        )


def test_a_direction_is_needed_for_a_key():
    def several(outputs, targets):
        return {"mean": 0.5}

    with pytest.raises(ConfigError, match="metric 'mean' does not say which direction"):
        finetune(**given(metric=several, objective="mean"))

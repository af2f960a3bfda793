"""Constraints that cannot be meant are refused in a sentence, before any query."""

import functools
import math

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    make_scorer,
    zero_one_loss,
)

import metricopt
from metricopt import (
    ConfigError,
    MetricError,
    at_least,
    at_most,
    finetune,
    make_metric,
)
from metricopt.reading.constraints import read_metric
from metricopt.sklearn import MetricTunedClassifier
from tests.robustness.refused import EXAMPLES, given, refusal

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


def hits(outputs, targets):
    """How many decisions are right."""
    return (outputs.argmax(1) == targets).sum()


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
    "percent": (
        {"metric": "f1_macro", "constraints": [at_least("accuracy", 95)]},
        r"the bound 95 on 'accuracy' is outside of its range \[0, 1\]: if 95 % is "
        r"meant, write at_least\('accuracy', 0\.95\)",
    ),
    "percent at most": (
        {"metric": "mcr", "constraints": [at_most(zero_one_loss, 5)]},
        r"'zero_one_loss' is .*\[0, 1\]: .* write at_most\('zero_one_loss', 0\.05\)",
    ),
    "below a rate": (
        {"metric": "mcr", "constraints": [at_most("accuracy", -1)]},
        r"the bound -1 on 'accuracy' is outside of its range \[0, 1\]$",
    ),
    "negated": (
        {"metric": "mcr", "constraints": [at_most("neg_log_loss", 3)]},
        r"\[-inf, 0\]: its values are negated, .* at_least\('neg_log_loss', -3\)",
    ),
    "beyond what is promised": (
        {
            "metric": "mcr",
            "constraints": [
                at_most(make_metric(hits, higher_is_better=True, low=0, high=50), 60)
            ],
        },
        r"the bound 60 on 'hits' is outside of its range \[0, 50\]",
    ),
    "key or metric": (
        {"constraints": [at_least("f-macro", 0.5)]},
        "'f-macro' may be a metric or a key of what the metric function returns: pass "
        r"objective=, .* else make_metric\('f-macro'\)",
    ),
    "another kind of outputs": (
        {"metric": "mcr", "constraints": [at_least("recall@1", 0.5)]},
        "'recall@1' reads embeddings, but 'mcr' reads scores: bound metrics that",
    ),
    "a recall of labels": (
        {"metric": "mcr", "constraints": [at_least("recall", 0.5)]},
        "'recall@1' reads embeddings, but 'mcr' reads scores: for the recall of labels",
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


LIMITS = {
    "a rate": (accuracy_score, (0, 1)),
    "a count": (functools.partial(accuracy_score, normalize=False), (0, math.inf)),
    "adjusted": (functools.partial(balanced_accuracy_score, adjusted=True), (-1, 1)),
    "an area": ("roc_auc", (0, 1)),
    "a correlation": ("matthews_corrcoef", (-1, 1)),
    "a negated error": ("neg_mean_absolute_error", (-math.inf, 0)),
    "explained": ("r2", (-math.inf, 1)),
    "a ratio": ("positive_likelihood_ratio", (-math.inf, math.inf)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_bounds_within_the_limits_of_a_metric_are_taken(name):
    spec, (low, high) = LIMITS[name]
    metric = make_metric(spec)
    assert metric.limits == (low, high)
    # What a query returns is taken as before: only bounds are held against limits.
    assert (metric.low, metric.high) == (make_metric(spec).low, make_metric(spec).high)
    for end in (max(low, -1e3), min(high, 1e3)):
        bound = read_metric("mcr", [at_least(metric, end)]).bounds[0]
        assert bound.value == end


def test_an_estimator_refuses_a_bound_before_it_is_trained():
    class Untrained(LogisticRegression):
        def fit(self, *given, **more):
            raise AssertionError("trained")

    labels = EXAMPLES[1].numpy() > 0
    for metric in ("accuracy", accuracy_score, make_scorer(accuracy_score)):
        tuned = MetricTunedClassifier(Untrained(), constraints=[at_least(metric, 95)])
        with pytest.raises(ConfigError, match=r"the bound 95 on 'accuracy.*, 0\.95\)$"):
            tuned.fit(EXAMPLES[0].numpy(), labels)


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

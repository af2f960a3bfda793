"""Constraints in a call of `finetune`: bounds are met, said, journalled and drawn."""

from functools import cache, partial

import pytest
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricopt
from metricopt import at_least, at_most
from metricopt.reading.constraints import read_metric
from metricopt.sklearn import MetricTunedClassifier
from tests.metricopt.hard_tables import hard_table

TABLE = hard_table(load_breast_cancer, seed=1)
PRECISION = "precision_score at least 0.9"


def decided(network, inputs):
    with torch.no_grad():
        return network(inputs).argmax(1)


def rates(outputs, targets):
    """Recall and precision in one dictionary."""
    labels = outputs.argmax(1)
    return {
        "recall": recall_score(targets, labels),
        "precision": precision_score(targets, labels, zero_division=0),
    }


@cache
def found(**settings):
    bounds = [at_least(precision_score, 0.9)]
    given = TABLE.given()
    return metricopt.finetune(
        **given, metric=recall_score, constraints=bounds, **settings
    )


@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_a_bound_is_met_and_the_result_says_how_probably():
    result = found()
    (bound,) = result.bounds
    assert result.spent.queries < 20
    labels = decided(result.merge(), TABLE.observe[0])
    assert bound.after == pytest.approx(precision_score(TABLE.observe[1], labels))
    assert result.metric_after == pytest.approx(recall_score(TABLE.observe[1], labels))
    assert bound.before < 0.9 <= bound.after
    assert result.feasible == {PRECISION: bound.probability}
    assert bound.probability >= 0.95 > result.evidence.met_before[0]
    assert result.notes["feasible"] == pytest.approx(bound.probability)
    assert not result.turned_down  # although the objective was better before
    assert result.metric_after < result.metric_before
    assert f"{PRECISION}: {bound.before:.4g} -> {bound.after:.4g}" in result.summary()
    test = decided(result.merge(), TABLE.test[0])
    assert precision_score(TABLE.test[1], test) >= 0.9


@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_less_confidence_leaves_more_of_the_objective():
    careful, bold = found(), found(confidence=0.6)
    assert bold.metric_after > careful.metric_after
    assert 0.6 <= bold.bounds[0].probability < careful.bounds[0].probability


def test_a_bound_that_cannot_be_met_is_said_not_to_be():
    result = metricopt.finetune(
        **TABLE.given(), metric="f1", constraints=[at_most("worst-class-error", 0.01)]
    )
    assert max(result.feasible.values()) < 0.95
    assert result.notes["feasible"] <= min(result.feasible.values())
    assert (
        "Nothing of use that was tried meets them with probability 0.95"
        in result.evidence.reason
    )
    (bound,) = result.bounds
    assert bound.after <= bound.before and result.metric_after >= result.metric_before
    assert "on other data with probability 0.0" in result.summary()


class Paid:
    """Rates, which one pays for."""

    __name__ = "paid"

    def __init__(self):
        self.calls = 0

    def __call__(self, outputs, targets):
        self.calls += 1
        return rates(outputs, targets)


@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_a_dictionary_is_the_same_as_its_metrics_and_a_checkpoint_answers(tmp_path):
    def call(metric):
        return metricopt.finetune(
            **TABLE.given(),
            metric=metric,
            objective="recall",
            higher_is_better=True,
            constraints=[at_least("precision", 0.9)],
            checkpoint=tmp_path / "queries.txt",
        )

    first, second = Paid(), Paid()
    one, two = call(first), call(second)
    assert first.calls == one.spent.queries
    assert second.calls == 0
    assert torch.equal(one.phi, two.phi)
    assert torch.equal(one.values, two.values)
    assert one.metric.name == "recall"
    assert one.metric_after == found().metric_after
    assert one.bounds[0].after == found().bounds[0].after
    with pytest.raises(metricopt.ConfigError, match="its constraints was"):
        metricopt.finetune(
            **TABLE.given(),
            metric=first,
            objective="recall",
            higher_is_better=True,
            constraints=[at_least("precision", 0.8)],
            checkpoint=tmp_path / "queries.txt",
        )


def test_a_bounded_metric_that_fails_is_forgiven_and_said():
    def fragile(outputs, targets):
        labels = outputs.argmax(1)
        if labels.sum() > 100:
            raise ValueError("too many")
        return precision_score(targets, labels, zero_division=0)

    result = metricopt.finetune(
        **TABLE.given(),
        metric="f1",
        constraints=[at_least(fragile, 0.9)],
        method="random-search",
        queries=20,
        no_harm=False,
    )
    assert "queries failed" in result.warnings[0]
    assert result.bounds[0].after >= 0.9


@pytest.mark.parametrize("method", ["cma-es", "random-search"])
def test_methods_that_know_nothing_of_bounds_keep_them(method):
    result = metricopt.finetune(
        **TABLE.given(),
        metric="f1",
        constraints=[at_most("fpr", 0.05)],
        method=method,
        queries=40,
        no_harm=False,
    )
    (bound,) = result.bounds
    assert bound.probability is None and bound.after <= 0.05 < bound.before
    assert "nothing shows whether it is met on other data" in result.summary()
    within = result.values[result.met]
    assert result.metric_after == pytest.approx(within.max().item())


@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_another_method_is_checked_for_bounds_too():
    result = found(method="cma-es", queries=60)
    assert result.bounds[0].probability >= 0.95
    assert result.bounds[0].after >= 0.9


def test_a_figure_shows_the_front_and_what_is_beyond_the_bound():
    queries, _, front, _ = found().plot().axes[:4]
    assert [text.get_text() for text in front.get_legend().get_texts()] == [
        "predicted",
        "returned",
        "bound",
    ]
    assert "beyond a bound" in [
        text.get_text() for text in queries.get_legend().get_texts()
    ]


def test_parts_of_one_function_keep_their_own_names():
    of_ill, of_well = (partial(recall_score, pos_label=label) for label in (0, 1))
    result = metricopt.finetune(
        **TABLE.given(),
        metric=of_well,
        constraints=[at_least(of_ill, 0.9), at_most(of_well, 0.999)],
    )
    named, own = "recall_score (2) at least 0.9", "recall_score at most 0.999"
    assert list(result.feasible) == [named, own]
    assert result.front.names == ("recall_score", "recall_score (2)")
    labels = decided(result.merge(), TABLE.observe[0])
    for bound, metric in zip(result.bounds, (of_ill, of_well), strict=True):
        assert bound.after == pytest.approx(metric(TABLE.observe[1], labels))


class Shares:
    """How many are called something, by one method of one object."""

    def positive(self, outputs, targets):
        return outputs.argmax(1).double().mean().item()


def names_of(metric, *bounds, **options):
    read = read_metric(metric, bounds, **options)
    return [each.name for each in read.metrics]


def test_one_metric_on_both_sides_keeps_its_name():
    shares, scorer = Shares(), "recall_macro"
    for same in (shares.positive, scorer, partial(recall_score, pos_label=0)):
        both = at_least(same, 0.2), at_most(same, 0.9)
        assert len(set(names_of(precision_score, *both))) == 2
    of_two = (partial(recall_score, pos_label=0) for _ in range(2))
    assert len(set(names_of(precision_score, *(at_least(m, 0.2) for m in of_two)))) == 2
    own = metricopt.make_metric(recall_score)
    assert len(set(names_of(own, at_least(recall_score, 0.5)))) == 1
    inputs, labels = load_breast_cancer(return_X_y=True)
    tuned = MetricTunedClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        scorer,
        constraints=[at_least(scorer, 0.3), at_most(scorer, 0.99)],
        queries=8,
    ).fit(inputs, labels)
    assert "(2)" not in tuned.report_


def test_a_key_keeps_its_name_and_a_name_that_is_free_is_found():
    def precision(outputs, targets):
        return rates(outputs, targets)["precision"]

    keyed = at_least(precision, 0.5), at_least("precision", 0.5)
    found = names_of(rates, *keyed, objective="recall", higher_is_better=True)
    assert found == ["recall", "precision (2)", "precision"]
    named = [partial(recall_score, pos_label=label) for label in (0, 1)]
    taken = metricopt.make_metric(
        lambda o, t: 0.5, name="recall_score (2)", higher_is_better=True
    )
    found = names_of(named[0], at_least(taken, 0.1), at_least(named[1], 0.1))
    assert found == ["recall_score", "recall_score (2)", "recall_score (3)"]

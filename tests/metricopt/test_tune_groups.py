"""Offsets of known outputs by group: high digits, of which the thin ones were rare."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

import metricopt
from metricopt import ConfigError, DataError
from metricopt.reading.columns import levels

QUICK = {"queries": 20, "progress": False}


@cache
def digits():
    """Log odds, labels and groups on observe and test."""
    pixels, digit = load_digits(return_X_y=True)
    pixels, high = pixels / 16, (digit > 4).astype(int)
    ink = pixels.mean(1)
    group = np.where(ink < np.median(ink), "thin", "bold")
    order = np.random.default_rng(0).permutation(len(digit))
    kept, observed, tested = np.split(order, [700, 1300])
    rare = (group[kept] == "thin") & (high[kept] == 1)
    kept = kept[~rare | (np.arange(700) % 8 == 0)]
    known = np.c_[pixels, group == "thin"]
    model = LogisticRegression(max_iter=1000).fit(known[kept], high[kept])
    odds = model.decision_function(known)
    return [(odds[part], high[part], group[part]) for part in (observed, tested)]


def worst_group(outputs, targets, group):
    """Balanced accuracy of the group where it is least."""
    return min(
        balanced_accuracy_score(targets[group == each], outputs[group == each] > 0)
        for each in ("thin", "bold")
    )


def worst_on_test(found, *more):
    _, (odds, labels, group) = digits()
    decided = found.predict(odds, *more)
    return min(
        balanced_accuracy_score(labels[group == each], decided[group == each])
        for each in ("thin", "bold")
    )


@cache
def tuned(offsets_by):
    (odds, labels, group), _ = digits()
    return metricopt.tune(
        odds,
        labels,
        worst_group,
        columns={"group": group},
        offsets_by=offsets_by,
        higher_is_better=True,
        **QUICK,
    )


def test_offsets_by_group_gain_more_than_offsets_for_all():
    _, (_, _, group) = digits()
    alike, apart = tuned(None), tuned("group")
    assert apart.groups.names == ("bold", "thin")
    assert apart.offsets.shape == (2, 1)
    bold, thin = apart.offsets[:, 0].tolist()
    assert thin > bold  # high thin digits were rare
    assert worst_on_test(apart, group) > worst_on_test(alike) + 0.01
    assert apart.spent.queries <= 20


def test_a_later_example_is_shifted_by_the_offsets_of_its_group():
    found, (_, (odds, _, group)) = tuned("group"), digits()
    offsets = dict(zip(found.groups.names, found.offsets[:, 0].tolist(), strict=True))
    moved = found.shifted(odds, group)
    by_hand = odds + np.array([offsets[each] for each in group])
    assert np.allclose(moved, by_hand, atol=1e-5)
    thin = group == "thin"
    assert np.allclose(found.shifted(odds[thin], group[thin]), moved[thin], atol=1e-5)


def test_a_bound_may_read_a_column_that_the_objective_does_not_take():
    (odds, labels, group), _ = digits()

    def accuracy(outputs, targets):
        return ((outputs > 0) == targets).mean()

    def gap(outputs, targets, group):
        called = outputs > 0
        return abs(called[group == "thin"].mean() - called[group == "bold"].mean())

    found = metricopt.tune(
        odds,
        labels,
        accuracy,
        columns={"group": group},
        higher_is_better=True,
        constraints=[metricopt.at_most(gap, 0.5)],
        **QUICK,
    )
    assert found.metric_after >= found.metric_before
    assert found.spent.queries <= 20


def test_groups_are_asked_for_where_they_are_needed_and_only_there():
    _, (odds, _, group) = digits()
    with pytest.raises(ConfigError, match="offsets differ by 'group': pass groups="):
        tuned("group").predict(odds)
    with pytest.raises(ConfigError, match="the same for all groups: leave groups out"):
        tuned(None).predict(odds, group)
    with pytest.raises(DataError, match="groups bold, thin of 'group', got also new"):
        tuned("group").predict(odds[:2], ["thin", "new"])
    with pytest.raises(DataError, match="one value for each of the 2 examples, got 1"):
        tuned("group").predict(odds[:2], ["thin"])
    assert len(tuned("group").predict(odds[:0], group[:0])) == 0


@pytest.mark.parametrize("offsets_by", [None, "group"])
def test_an_exception_carries_the_best_offsets_that_decide_later_outputs(offsets_by):
    (odds, labels, group), (later, _, others) = digits()

    def seen(query, value, best):
        if query == 9:
            raise ArithmeticError

    columns = {"group": group}
    with pytest.raises(ArithmeticError) as caught:
        metricopt.tune(
            odds,
            labels,
            worst_group,
            columns=columns,
            offsets_by=offsets_by,
            higher_is_better=True,
            callback=seen,
            **QUICK,
        )
    best = caught.value.partial
    assert isinstance(best, metricopt.Tuned)
    more = () if offsets_by is None else (group,)
    decided = torch.tensor(2 * best.predict(odds, *more) - 1)
    value = worst_group(decided, torch.tensor(labels), group)
    assert best.metric_after == pytest.approx(value)
    more = () if offsets_by is None else (others,)
    assert best.predict(later, *more).shape == later.shape
    assert "on 600 examples" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "offsets_by='group' needs this column"),
        ({"group": np.arange(600)}, "at most 100 different values, got 600"),
    ],
)
def test_columns_that_name_no_groups_are_refused(columns, message):
    (odds, labels, _), _ = digits()
    with pytest.raises(DataError, match=message):
        metricopt.tune(
            odds, labels, "accuracy", columns=columns, offsets_by="group", **QUICK
        )


def both(outputs, targets, group):
    """Accuracy, and the gap between groups in how many high digits are found."""
    found, high = outputs > 0, targets == 1
    rates = [found[high & (group == each)].mean() for each in ("thin", "bold")]
    return {"accuracy": (found == high).mean(), "gap": abs(rates[0] - rates[1])}


def test_a_bound_on_a_gap_is_met_by_offsets_of_groups():
    (odds, labels, group), _ = digits()
    found = metricopt.tune(
        odds,
        labels,
        both,
        columns={"group": group},
        offsets_by="group",
        objective="accuracy",
        constraints=[metricopt.at_most("gap", 0.1)],
        confidence=0.5,
        higher_is_better=True,
        **QUICK,
    )
    before = both(odds, labels, group)
    after = both(found.shifted(odds, group), labels, group)
    assert before["gap"] > 0.2
    assert after["gap"] <= 0.1
    assert after["accuracy"] > before["accuracy"] - 0.02


@pytest.mark.parametrize("bound", [0.05, 0.1])
def test_offsets_of_groups_meet_a_bound_as_probably_as_one_for_all(bound):
    (odds, labels, group), _ = digits()
    met = []
    for offsets_by in (None, "group"):
        found = metricopt.tune(
            odds,
            labels,
            both,
            columns={"group": group},
            offsets_by=offsets_by,
            objective="accuracy",
            constraints=[metricopt.at_most("gap", bound)],
            higher_is_better=True,
            **QUICK,
        )
        met.append((found.bounds[0].probability >= 0.5, found.metric_after))
    assert met[1] >= met[0]


def test_groups_that_the_metric_does_not_take_are_used_all_the_same():
    (odds, labels, group), _ = digits()
    found = metricopt.tune(
        odds, labels, "mcr", columns={"group": group}, offsets_by="group", **QUICK
    )
    bold, thin = found.offsets[:, 0].tolist()
    assert thin > bold
    assert not [each for each in found.warnings if "not used" in each]


def test_great_numbers_name_groups_of_their_own():
    numbers = torch.tensor([2**60 + 1, 2**60, 1_234_568, 1_234_567, 2**60])
    places, names = levels(numbers)
    assert names == ["1234567", "1234568", str(2**60), str(2**60 + 1)]
    assert places.tolist() == [3, 2, 1, 0, 2]
    assert levels(torch.tensor([1.0, 0.1]))[1] == ["0.1", "1"]
    assert levels(torch.tensor([True, False]))[1] == ["0", "1"]


def test_values_have_the_same_names_among_others_of_any_kind():
    mixed = np.array([True, False, None, 2.0, np.float32(3), "b"], dtype=object)
    assert levels(mixed)[1] == ["0", "1", "2", "3", "None", "b"]
    assert levels(np.array(["1.0", "a"]))[1] == ["1.0", "a"]

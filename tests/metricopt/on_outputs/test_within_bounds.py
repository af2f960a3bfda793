"""The choice within bounds and its Pareto front, against brute force on real tables."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricopt
from metricopt import ConfigError, at_least
from metricopt.methods.result import Evidence
from metricopt.metrics.constrained import Bounds
from metricopt.on_outputs.statistics_value import StatisticsValueFunction
from metricopt.on_outputs.within_bounds.choice import Chosen
from metricopt.on_outputs.within_bounds.front import is_best, spread_out
from metricopt.on_outputs.within_bounds.held import Held
from metricopt.on_outputs.within_bounds.value import CHARGE, ConstrainedValueFunction
from metricopt.on_outputs.within_bounds.verdict import objection
from metricopt.statistics.contract import Family
from tests.metricopt.drawn import seeded
from tests.metricopt.hard_tables import hard_table


def recalls(outputs, targets):
    """The recall of each of three classes."""
    found = recall_score(targets, outputs.argmax(1), average=None, labels=[0, 1, 2])
    return dict(zip(("first", "second", "third"), found.tolist(), strict=True))


def rates(outputs, targets):
    """Recall and precision of two classes."""
    labels = outputs.argmax(1)
    return {
        "recall": recall_score(targets, labels),
        "precision": precision_score(targets, labels, zero_division=0),
    }


@cache
def searched(load):
    """A table, and what a call found on it."""
    table = hard_table(load, seed=1)
    if load is load_wine:
        keys, function = ("first", "second", "third"), recalls
    else:
        keys, function = ("recall", "precision"), rates
    found = metricopt.finetune(
        **table.given(),
        metric=function,
        objective=keys[0],
        higher_is_better=True,
        constraints=[at_least(key, 0.5) for key in keys[1:]],
    )
    return table, function, found


def of_offsets(table, function, offsets):
    """Values [P, M] of a function for offsets [P, C] of the outputs on observe."""
    inputs, targets = table.observe
    with torch.no_grad():
        outputs = table.network(inputs)
    rows = [list(function(outputs + each, targets).values()) for each in offsets]
    return torch.tensor(rows, dtype=torch.float64)


def volume(values):
    """Share of the unit cube that values [F, M] dominate; more is better."""
    values = values.clamp(0, 1)
    if values.shape[1] == 1:
        return values.max().item()
    ends = values[:, 0].unique()  # ascending
    widths = ends.diff(prepend=torch.zeros(1).double())
    slices = [volume(values[values[:, 0] >= end][:, 1:]) for end in ends]
    return sum(w * s for w, s in zip(widths.tolist(), slices, strict=True))


def test_a_volume_is_counted_right():
    values = torch.tensor([[0.5, 1.0], [1.0, 0.5], [0.2, 0.2]]).double()
    assert volume(values) == pytest.approx(0.75)
    corner = torch.tensor([[1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]).double()
    assert volume(corner) == pytest.approx(0.5 + 0.125)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_a_front_is_as_good_as_brute_force(load):
    table, function, found = searched(load)
    with torch.no_grad():
        outputs = table.network(table.observe[0])
    if load is load_wine:
        steps = torch.linspace(-8, 8, 33)
        offsets = torch.tensor([(0.0, *pair) for pair in product(steps, steps)])
    else:
        gaps = outputs[:, 0] - outputs[:, 1]
        ends = gaps.unique()
        between = torch.cat([ends[:1] - 1, (ends[1:] + ends[:-1]) / 2, ends[-1:] + 1])
        offsets = torch.stack([torch.zeros_like(between), between], 1)
    forced = of_offsets(table, function, offsets)
    front = found.front
    assert volume(front.values) >= 0.98 * volume(forced)
    # Its points are what is predicted of them.
    some = torch.linspace(0, len(front.phi) - 1, 5).long()
    place = found.adapter.parts["offsets"]
    seen = of_offsets(table, function, front.phi[some][:, place])
    torch.testing.assert_close(seen, front.values[some], atol=0.02, rtol=0)
    # On examples that chose nothing they are about as good.
    assert volume(front.elsewhere) >= 0.85 * volume(forced)
    assert found.spent.queries < 25


def test_a_point_of_the_front_can_be_applied():
    table, function, found = searched(load_breast_cancer)
    point = found.at(len(found.front.phi) // 2)
    with torch.no_grad():
        outputs = point.merge()(table.observe[0])
    seen = list(function(outputs, table.observe[1]).values())
    assert [point.metric_after, point.bounds[0].after] == pytest.approx(seen, abs=0.02)
    assert point.evidence is None and point.bounds[0].probability is None
    with pytest.raises(ConfigError, match=r"the front has \d+ points, so no point 999"):
        found.at(999)


def test_points_of_a_front_are_those_that_nothing_dominates():
    values = torch.rand(300, 3, generator=seeded()).double()
    by_hand = [
        not any(bool((other <= row).all() and (other < row).any()) for other in values)
        for row in values
    ]
    assert is_best(values).tolist() == by_hand
    assert is_best(torch.zeros(4, 2)).sum() == 1


def test_points_that_are_left_out_are_near_others():
    line = torch.linspace(0, 1, 101)
    values = torch.stack([line, 1 - line], 1)
    kept = spread_out(values, 11)
    assert kept[0] == 0 and kept[-1] == 100
    assert values[kept, 0].diff().max() < 0.2


def test_what_exceeds_a_bound_is_charged_by_what_is_expected():
    generator = seeded()
    groups = {"rates": torch.rand(12, 2, generator=generator).double()}
    families = (Family(("rates",), "rates"),)
    cost, excess = groups["rates"].T
    parts = [
        StatisticsValueFunction(groups, each, families) for each in (cost, excess - 0.5)
    ]
    value = ConstrainedValueFunction(parts)
    asked = {"rates": torch.tensor([[0.3, 0.2], [0.3, 0.8]]).double()}
    means, (costs, _) = value.means(asked), value.predict(asked)
    assert means[:, 1].tolist() == pytest.approx([-0.3, 0.3], abs=1e-3)
    assert costs.tolist() == pytest.approx([0.3, 0.3 + CHARGE * 0.3], abs=0.02)
    tighter, _ = value.with_margin(torch.tensor([0.4])).predict(asked)
    assert tighter[0].item() == pytest.approx(0.3 + CHARGE * 0.1, abs=0.02)
    torch.testing.assert_close(value.means(asked), means)


def held(probability, excess):
    """A phi that meets one bound with a probability."""
    each, one = torch.tensor([0.2, excess]), torch.tensor([probability])
    return Held(torch.zeros(1), "offsets", each, each[None], one, one, probability)


@pytest.mark.parametrize(
    ("probability", "gain", "is_taken"),
    [
        (0.55, -0.30, True),  # likely, at any price
        (0.40, -0.30, True),  # dearer than nothing, and worth it
        (0.40, -0.41, False),
        (0.04, 0.00, False),  # hardly more probable
        (0.04, 0.20, True),  # no nearer, and no further: a gain
    ],
)
def test_a_bound_that_nothing_surely_meets_has_its_price(probability, gain, is_taken):
    chosen = Chosen(held(probability, 0.1), held(0.0, 0.1), None)
    bounds = Bounds(("gap at most 0.05",), (0, 1))
    evidence = Evidence("", gain, 0.01)
    assert (objection(chosen, evidence, bounds, 2 / 3) == "") == is_taken


def least_recall(outputs, targets):
    right = outputs.argmax(1) == targets
    return min(right[targets == label].float().mean().item() for label in range(10))


def accuracy(outputs, targets):
    return (outputs.argmax(1) == targets).float().mean().item()


@cache
def rarer_and_rarer_digits():
    """Return logits and labels of digits, each rarer than the last, some never seen."""
    inputs, digits = load_digits(return_X_y=True)
    places = [np.flatnonzero(digits == k)[: 140 // (1 + k)] for k in range(10)]
    fitted = np.concatenate([rows[: len(rows) // 3] for rows in places])
    observed = np.concatenate([rows[len(rows) // 3 :] for rows in places])
    x = inputs[:, 18:30]
    classifier = LogisticRegression(C=0.003, max_iter=500)
    classifier.fit(x[fitted], digits[fitted])
    outputs = classifier.decision_function(x[observed])
    return torch.from_numpy(outputs), torch.from_numpy(digits[observed])


def test_a_least_recall_that_no_offset_alone_raises_is_raised():
    outputs, targets = rarer_and_rarer_digits()
    bound = at_least(metricopt.make_metric(least_recall, higher_is_better=True), 0.15)
    found = metricopt.tune(
        outputs,
        targets,
        accuracy,
        higher_is_better=True,
        constraints=[bound],
        queries=15,
        outputs="logits",
        progress=False,
    )
    shifted = found.shifted(outputs)
    assert least_recall(outputs, targets) == 0.0
    assert least_recall(shifted, targets) >= 0.15
    assert accuracy(shifted, targets) > accuracy(outputs, targets)


def test_thresholds_of_probabilities_are_those_of_their_logits():
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs, labels = inputs[::2, [0, 1, 4, 5]], 1 - labels[::2]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    shares = cross_val_predict(model, inputs, labels, method="predict_proba")
    given = {
        "log-probabilities": np.log(shares),
        "logits": np.log(shares / shares[:, :1]),
    }
    decided = []
    for outputs, rows in given.items():
        found = metricopt.tune(
            rows,
            labels,
            recall_score,
            constraints=[at_least(precision_score, 0.9)],
            outputs=outputs,
            progress=False,
        )
        decided.append(np.asarray(found.predict(rows)))
        assert min(found.feasible.values()) > 0.9
    assert (decided[0] == decided[1]).all()

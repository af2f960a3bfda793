"""Bounds on metrics: feasibility comes first, and one call gives several numbers."""

import pytest
import torch
from sklearn.metrics import precision_score

from metricopt import MetricError, at_least, at_most
from metricopt.metrics.base import METRICS
from metricopt.metrics.constrained import constrained_cost, met
from metricopt.reading.columns import Columned
from metricopt.reading.constraints import read_metric
from metricopt.reading.meaning import Meaning
from metricopt.tasks.judge import bound_metric
from tests.metricopt.drawn import seeded

LABELS = Meaning(truth="labels")
OUTPUTS = torch.randn(4, 60, 1, generator=seeded())
TARGETS = torch.randint(2, (60,), generator=seeded(1))


def test_what_meets_the_bounds_is_better_than_what_does_not():
    each = torch.rand(200, 3, generator=seeded()).double()
    each[:, 1:] -= 0.5
    costs = constrained_cost(each).tolist()
    assert min(costs) >= 0 and max(costs) <= 1

    def place(row):
        """What orders rows, by hand: feasibility, then objective or excess."""
        objective, *excess = row.tolist()
        over = sum(max(0, part) for part in excess)
        return (1, over) if over > 0 else (0, objective)

    by_hand = sorted(range(200), key=lambda i: place(each[i]))
    assert by_hand == sorted(range(200), key=costs.__getitem__)
    assert met(each).tolist() == [place(row)[0] == 0 for row in each]


def test_a_metric_alone_costs_what_it_costs():
    each = torch.rand(5, 1, generator=seeded()).double()
    assert torch.equal(constrained_cost(each), each[:, 0])


def test_each_and_native_are_the_values_of_every_metric():
    bounds = [at_least(precision_score, 0.6), at_most("fpr", 0.2)]
    metric = bound_metric(read_metric("f1", bounds), LABELS)
    each = metric.each(OUTPUTS, TARGETS)
    native = metric.native(each)
    assert each.shape == native.shape == (4, 3)
    for row, outputs in zip(native, OUTPUTS[..., 0], strict=True):
        decided = (outputs > 0).long()
        negatives = decided[TARGETS == 0]
        assert row[1].item() == pytest.approx(precision_score(TARGETS, decided))
        assert row[2].item() == pytest.approx(negatives.float().mean().item())
    f1 = METRICS.get("f1")().values(OUTPUTS, TARGETS)
    torch.testing.assert_close(native[:, 0], f1)
    torch.testing.assert_close(each[:, 1], 0.6 - native[:, 1])
    torch.testing.assert_close(each[:, 2], native[:, 2] - 0.2)
    assert metric.values(OUTPUTS, TARGETS).tolist() == constrained_cost(each).tolist()
    assert [bound.name for bound in metric.bounds] == [
        "precision_score at least 0.6",
        "fpr at most 0.2",
    ]
    assert metric.known.axes == (0, 1, 2)


class Counted:
    """A dictionary of two numbers, and how often it was asked for."""

    __name__ = "counted"

    def __init__(self, fails=()):
        self.calls, self.fails = 0, fails

    def __call__(self, outputs, targets):
        self.calls += 1
        if self.calls in self.fails:
            raise ValueError("out of reach")
        right = ((outputs[:, 0] > 0) == targets.bool()).double().mean().item()
        return {"right": right, "mean": outputs.mean().item()}


def test_a_function_of_several_numbers_is_called_once_for_each_row():
    function = Counted()
    metric = read_metric(
        function, [at_most("mean", 0.3)], objective="right", higher_is_better=True
    )
    metric = bound_metric(metric, LABELS)
    found = metric.native(metric.each(OUTPUTS, TARGETS))
    assert function.calls == 4
    assert found[:, 1].tolist() == pytest.approx(OUTPUTS.mean((1, 2)).tolist())
    assert metric.value(OUTPUTS[0], TARGETS) == constrained_cost(
        metric.each(OUTPUTS[:1], TARGETS)
    )


def test_what_a_function_raises_is_raised_for_every_number_and_then_asked_again():
    function = Counted(fails=(1,))
    metric = read_metric(
        function, [at_most("mean", 0.3)], objective="right", higher_is_better=True
    )
    one, row = metric.metrics, OUTPUTS[0]
    for part in one:
        with pytest.raises(MetricError, match="ValueError: out of reach"):
            part.value(row, TARGETS)
    assert function.calls == 1
    assert one[1].value(row, TARGETS) == pytest.approx(row.mean().item())
    assert function.calls == 2


def test_each_metric_gets_the_columns_it_takes():
    def weighted(outputs, targets, weight):
        return ((outputs[:, 0] > 0).double() * weight).sum().item()

    bounds = [at_most(weighted, 5)]
    metric = bound_metric(read_metric("f1", bounds), LABELS, ("weight", "other"))
    assert metric.columns == ("weight",)
    weight = torch.rand(60, generator=seeded()).double()
    found = metric.native(metric.each(OUTPUTS, Columned(TARGETS, {"weight": weight})))
    expected = ((OUTPUTS[..., 0] >= 0) * weight).sum(1)
    torch.testing.assert_close(found[:, 1], expected)

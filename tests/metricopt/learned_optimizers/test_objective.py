"""Eq. (6): worked numbers, golden vectors, and what is refused."""

import math
import re

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.learned_optimizers import Objective
from metricopt.learned_optimizers.objective import loss_terms, metric_terms
from tests.golden import assert_golden, load_golden

CASES = list(load_golden("learned_optimizer_objective"))


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_b1_metric_terms_by_hand():
    terms = metric_terms(numbers(0.5, 0.4, 0.45, 0.3), 1.5)
    assert terms.tolist() == pytest.approx([0.523123, 0.779949, 0.474077], abs=1e-6)
    assert terms.mean().item() == pytest.approx(0.592383, abs=1e-6)
    constant = metric_terms(torch.full((5,), 0.3, dtype=torch.float64), 100.0)
    assert constant.tolist() == pytest.approx([math.log(2)] * 4)


def test_b2_loss_terms_by_hand():
    terms = loss_terms(numbers(1.0, 0.1, 0.01), 1e-12)
    assert terms.mean().item() == pytest.approx(-3.4539, abs=1e-4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case):
    settings, expected = case.settings, case.expected
    costs, losses = case.inputs["metric_pred_0_to_T"], case.inputs["loss_0_to_T"]
    for detached, name in ((True, "best_detached"), (False, "full")):
        predicted = costs.clone().requires_grad_()
        term = metric_terms(predicted, settings["beta"], detached=detached).mean()
        (gradient,) = torch.autograd.grad(term, predicted)
        assert_golden(term.detach(), expected["metric_term"], case.tolerance)
        assert_golden(gradient, expected[f"grad_metric_pred_{name}"], case.tolerance)
    term = loss_terms(losses, settings["epsilon"]).mean()
    assert_golden(term, expected["loss_term"], case.tolerance)
    objective = Objective(sharpness=settings["beta"], epsilon=settings["epsilon"])
    found = objective.value(losses, costs)
    assert_golden(found, expected["total_lambda50"], case.tolerance)


def test_runs_are_judged_one_by_one_as_by_a_loop():
    generator = torch.Generator().manual_seed(0)
    losses, costs = torch.rand(2, 7, 3, 2, generator=generator, dtype=torch.float64)
    costs[3, 0] = 0.0  # the division has a floor
    found = Objective(metric_weight=2.0, epsilon=1e-4).value(losses, costs)
    for run in [(i, j) for i in range(3) for j in range(2)]:
        loss, cost = losses[:, *run].tolist(), costs[:, *run].tolist()
        total = 0.0
        for t in range(1, 7):
            worse = (cost[t] - min(cost[:t])) / max(cost[t], 1e-3)
            total += 2 * math.log1p(math.exp(3 * worse)) / 6
            total += (math.log(loss[t] + 1e-4) - math.log(loss[0] + 1e-4)) / 6
        assert found[run].item() == pytest.approx(total)


def test_a_cost_of_nothing_and_a_loss_beyond_all_stay_finite():
    costs = numbers(0.5, 0.0, 1.0).requires_grad_()
    terms = metric_terms(costs, 1e4)
    assert terms.isfinite().all()
    assert torch.autograd.grad(terms.sum(), costs)[0].isfinite().all()
    assert loss_terms(numbers(1e-30, 1e30, -1.0), 1e-8).tolist() == [20.0, 0.0]


def test_a_window_holds_its_share_of_the_objective():
    losses, costs = torch.rand(2, 9, 2, generator=torch.Generator().manual_seed(1))
    for kind in ("log-ratio", "sum"):
        objective = Objective(loss_term=kind)
        whole = objective.value(losses, costs)
        first = objective.terms(losses[:4], costs[:4], 8).sum(0)
        second = objective.terms(losses, costs, 8)[3:].sum(0)
        torch.testing.assert_close(first + second, whole)


def test_the_metric_is_left_out_where_it_has_no_weight():
    losses = numbers(1.0, 0.5)
    alone = Objective(metric_weight=0.0)
    assert alone.value(losses, None) == alone.value(losses, losses)
    assert Objective(loss_term="sum").value(losses, None) == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric_weight": -1.0}, "metric_weight >= 0, got metric_weight=-1.0"),
        ({"sharpness": 0.0}, "sharpness > 0, got sharpness=0.0"),
        ({"epsilon": 0.0}, "epsilon > 0, got epsilon=0.0"),
        ({"loss_term": "mean"}, "loss_term must be one of 'log-ratio', 'sum', got"),
    ],
)
def test_a_setting_out_of_its_range_is_named(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Objective(**changes)

"""Soft ranks and their correlation against golden vectors of peer code."""

import pytest
import torch
from scipy.stats import rankdata

from baselines.learned_losses.soft_ranks import (
    NetworkRanks,
    correlation,
    hard_ranks,
    projected_ranks,
)
from metricopt.errors import ConfigError, ShapeError
from tests.golden import assert_golden, load_golden

NETWORK = list(load_golden("diffsort_spearman"))
PROJECTED = list(load_golden("soft_rank_spearman"))


@pytest.mark.parametrize("case", NETWORK, ids=lambda case: case.name)
def test_sorting_network_agrees_with_the_code_of_reloss(case):
    losses = case.inputs["losses"].requires_grad_()
    ranker = NetworkRanks(len(losses), steepness=case.settings["steepness"])
    ranks = ranker(-losses)
    expected = case.expected["soft_rank_of_negative_loss"]
    assert_golden(ranks, expected, case.tolerance)
    found = correlation(ranks, hard_ranks(case.inputs["metrics"]))
    assert_golden(found, case.expected["spearman"], case.tolerance)
    found.backward()
    assert_golden(losses.grad, case.expected["grad_losses"], case.tolerance)


@pytest.mark.parametrize("case", PROJECTED, ids=lambda case: case.name)
def test_projection_agrees_with_peer_code(case):
    kind = case.settings["regularization"]
    strength = case.settings["regularization_strength"]
    values = case.inputs["x"].requires_grad_()

    def ranks(given):
        return projected_ranks(given, strength=strength, regularization=kind)

    found = ranks(values)
    assert_golden(found, case.expected["soft_rank"], case.tolerance)
    (vjp,) = torch.autograd.grad(found, values, case.inputs["upstream_grad"])
    assert_golden(vjp, case.expected["vjp"], case.tolerance)
    agreement = correlation(ranks(values), ranks(case.inputs["y"]))
    assert_golden(agreement, case.expected["soft_spearman"], case.tolerance)
    (gradient,) = torch.autograd.grad(agreement, values)
    assert_golden(gradient, case.expected["grad_soft_spearman"], case.tolerance)


@pytest.mark.parametrize("kind", ["l2", "kl"])
def test_a_small_strength_gives_hard_ranks(kind):
    values = torch.tensor([0.3, -1.0, 2.0, 0.9])
    ranks = projected_ranks(values, strength=0.01, regularization=kind)
    assert ranks.tolist() == pytest.approx(rankdata(values).tolist())
    assert hard_ranks(values).tolist() == [1, 0, 3, 2]


def test_constant_ranks_do_not_correlate():
    assert correlation(torch.ones(4), torch.arange(4.0)).item() == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"strength": 0.0}, "strength=0.0"), ({"regularization": "l1"}, "'l1'")],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        projected_ranks(torch.arange(3.0), **settings)


@pytest.mark.parametrize("ranks", [NetworkRanks(2), projected_ranks])
def test_ranks_of_one_value_are_refused(ranks):
    with pytest.raises(ShapeError, match=r"at least 2 values, got \[1\]"):
        ranks(torch.ones(1))

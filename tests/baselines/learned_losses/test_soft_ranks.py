"""Soft ranks and their correlation against golden vectors of peer code."""

import pytest
import torch

from baselines.learned_losses.soft_ranks import NetworkRanks, correlation, hard_ranks
from metricopt.errors import ShapeError
from tests.golden import assert_golden, load_golden

NETWORK = list(load_golden("diffsort_spearman"))


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


def test_hard_ranks_are_places_in_order():
    assert hard_ranks(torch.tensor([0.3, -1.0, 2.0, 0.9])).tolist() == [1, 0, 3, 2]


def test_constant_ranks_do_not_correlate():
    assert correlation(torch.ones(4), torch.arange(4.0)).item() == 0


def test_ranks_of_one_value_are_refused():
    with pytest.raises(ShapeError, match=r"at least 2 values, got \[1\]"):
        NetworkRanks(2)(torch.ones(1))

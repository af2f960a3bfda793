"""The health check: rank correlation, error, and a plain sentence."""

import math

import pytest
import torch
from scipy.stats import spearmanr

from metricopt.algorithm1.health import (
    check_health,
    health_notes,
    verdict,
)
from metricopt.algorithm1.trajectories import (
    GUIDED,
    KINDS,
    LOSS,
    Trajectories,
    concatenate,
)
from metricopt.algorithm1.value_function import ValueFunction
from tests.metricopt.drawn import seeded


class Known(ValueFunction):
    """Predicts what a function says."""

    def __init__(self, function):
        super().__init__(2)
        self.function = function

    def forward(self, phi):
        return self.function(phi)


@pytest.fixture
def held_out():
    """Three trajectories whose cost is the first coordinate of phi."""
    generator = seeded(0)
    phi = torch.rand(3, 10, 2, generator=generator)
    steps = torch.tensor([[0, 4, 9], [1, 2, 3], [5, 6, 7]])
    costs = phi[torch.arange(3)[:, None], steps][..., 0].double()
    return Trajectories(phi, phi[..., 0], steps, costs)


def checked(held_out, function):
    return check_health(Known(function), held_out)


def noted(**spearman):
    """Notes of a health check with these rank correlations by kind."""
    notes = {"spread": 1.0}
    for kind, value in spearman.items():
        notes |= {f"spearman_{kind}": value, f"value_error_{kind}": 0.01}
        notes |= {f"health_spread_{kind}": 0.1}
    return notes


def test_a_value_function_that_knows_the_cost_is_trusted(held_out):
    health = checked(held_out, lambda phi: phi[:, 0])
    assert health.spearman == pytest.approx(1.0)
    assert health.error == pytest.approx(0.0, abs=1e-9)
    torch.testing.assert_close(health.predicted, health.observed)
    assert verdict(health_notes(LOSS, health)) == (
        "Trust it: along the loss its rank correlation is 1.00 and its mean error "
        f"0.0000, where the observed cost varies by {health.spread:.4f}."
    )


def test_figures_equal_their_definitions(held_out):
    health = checked(held_out, lambda phi: phi[:, 0] - phi[:, 1])
    visited = held_out.phi[torch.arange(3)[:, None], held_out.steps].flatten(0, 1)
    predicted = (visited[:, 0] - visited[:, 1]).double()
    observed = held_out.costs.flatten()
    torch.testing.assert_close(health.predicted, predicted)
    assert torch.equal(health.observed, observed)
    expected = spearmanr(predicted.numpy(), observed.numpy()).statistic
    assert health.spearman == pytest.approx(expected)
    assert health.error == pytest.approx((predicted - observed).abs().mean().item())
    assert health.spread == pytest.approx(observed.std().item())


def test_only_ranks_count_for_trust_and_the_reverse_order_is_not_trusted(held_out):
    health = checked(held_out, lambda phi: phi[:, 0].exp() * 10)
    assert health.spearman == pytest.approx(1.0)
    assert health.error > 5
    health = checked(held_out, lambda phi: -phi[:, 0])
    assert health.spearman == pytest.approx(-1.0)
    sentence = verdict(health_notes(GUIDED, health))
    assert sentence.startswith("Do not trust it: along guided steps its rank corr")
    assert "-1.00" in sentence


@pytest.mark.parametrize("constant", ["predicted", "observed"])
def test_constants_have_no_rank_correlation(held_out, constant):
    if constant == "observed":
        held_out.costs.fill_(0.5)
    health = checked(held_out, lambda phi: phi[:, 0] * (constant == "observed"))
    assert math.isnan(health.spearman)
    sentence = verdict(health_notes(LOSS, health))
    assert sentence.startswith("Do not trust it: along the loss its rank correlation")
    assert "is nan and" in sentence
    assert "Train on more tasks" in sentence


def test_one_observation_is_too_few_for_a_rank_correlation(held_out):
    parts = held_out.steps[:1, :1], held_out.costs[:1, :1]
    single = Trajectories(held_out.phi[:1], held_out.losses[:1], *parts)
    health = checked(single, lambda phi: phi[:, 0])
    assert math.isnan(health.spearman)
    assert health.error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("spearman", "start"),
    [(0.8, "Trust it"), (0.79, "Use with care"), (0.5, "Use with care"), (0.49, "Do")],
)
@pytest.mark.parametrize("better", KINDS)
def test_the_kind_that_is_ranked_worse_decides(spearman, start, better):
    worse = {LOSS: GUIDED, GUIDED: LOSS}[better]
    for notes in (noted(**{worse: spearman}), noted(**{worse: spearman, better: 0.99})):
        assert verdict(notes).startswith(f"{start}")
    assert verdict(noted(**{better: math.nan, worse: 0.99})).startswith("Do not trust")
    assert verdict({"spread": 1.0}) is None


def test_the_gap_between_the_kinds_earns_no_trust(held_out):
    """Pooled, this value function seems good; it ranks neither kind."""
    far = Trajectories(
        held_out.phi + 10.0, held_out.losses, held_out.steps, held_out.costs + 10.0
    )
    kinds, notes = {LOSS: held_out, GUIDED: far}, {}

    def only_the_gap(phi):
        return 10.0 * (phi[:, 0] > 5) + phi[:, 1] % 1

    pooled = checked(concatenate(list(kinds.values())), only_the_gap)
    for kind, part in kinds.items():
        notes |= health_notes(kind, checked(part, only_the_gap))
    assert pooled.spearman > 0.6
    assert verdict(notes).startswith("Do not trust it")

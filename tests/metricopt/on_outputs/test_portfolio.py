"""The portfolio: losses that give candidates for free, and queries that pick one."""

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.losses.portfolio import (
    PORTFOLIO,
    LossFacts,
    ShiftedCrossEntropy,
    make_portfolio,
)
from metricopt.methods.result import Budget
from metricopt.on_outputs.coordinates import coordinates
from metricopt.on_outputs.portfolio import PortfolioSearch
from metricopt.on_outputs.snapshots import PortfolioSettings, snapshots
from tests.metricopt.drawn import seeded
from tests.metricopt.on_outputs.outputs_task import digits_task
from tests.metricopt.quadratic_task import QuadraticTask


def facts(**changes):
    flat = torch.full((3,), 1 / 3)
    known = {"outputs": 3, "sampled": flat, "observed": flat, "recalls": flat}
    known["batch_size"] = 8
    return LossFacts(**(known | changes))


def test_losses_that_make_no_sense_are_left_out():
    assert set(make_portfolio(facts())) == {"cross-entropy", "pairwise AUC-ROC"}
    unequal = torch.tensor([0.6, 0.3, 0.1])
    adjusted = set(make_portfolio(facts(sampled=unequal)))
    assert "prior-adjusted, tau = 1" in adjusted
    weighted = make_portfolio(facts(recalls=unequal))
    weights = weighted["class-weighted, strength 3"].weights
    assert (weights.diff() > 0).all()  # the more is missed, the more it weighs


def test_at_tau_1_the_loss_is_right_for_the_observed_prior():
    sampled, observed = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    known = LossFacts(1, sampled, observed, recalls=torch.ones(2), batch_size=8)
    loss = make_portfolio(known)["prior-adjusted, tau = 1"]
    # Where classes are drawn alike and inputs say nothing, log odds of .2 to .8 are
    # best.
    targets = torch.tensor([0, 1])
    logits = torch.linspace(-3, 1, 401)
    costs = torch.stack([loss(torch.full((2, 1), x.item()), targets) for x in logits])
    best = logits[costs.argmin()]
    torch.testing.assert_close(best, torch.tensor(0.25).log(), atol=0.02, rtol=0)


def test_one_logit_is_two_classes():
    outputs, targets = torch.randn(2, 9, 1, generator=seeded()), torch.arange(18) % 2
    shift = torch.tensor([0.3, -0.4])
    one = ShiftedCrossEntropy(1, shift=shift).row_losses(outputs, targets.view(2, 9))
    both = torch.cat([torch.zeros_like(outputs), outputs], -1)
    two = ShiftedCrossEntropy(2, shift=shift).row_losses(both, targets.view(2, 9))
    torch.testing.assert_close(one, two)


def test_a_loss_joins_by_being_registered():
    task = digits_task("mcr")
    name = "of the test"

    @PORTFOLIO.register(name)
    def own(known):
        return {name: lambda outputs, targets: outputs.square().mean()}

    try:
        assert name in task.portfolio
    finally:
        del PORTFOLIO._units[name]


def test_losses_can_be_chosen_by_how_their_names_begin():
    task = digits_task("mcr")
    along = coordinates(task.statistics, seeded())
    settings = PortfolioSettings(marks=(5,), losses=("class-weighted",))
    found = snapshots(task, along, settings, seeded(), rows=1)
    names = [name for name in task.portfolio if name.startswith("class-weighted")]
    assert found.shape == (1, len(names), task.size)


def test_snapshots_cost_no_query_and_lower_their_loss():
    task = digits_task("mcr")
    along = coordinates(task.statistics, seeded())
    settings = PortfolioSettings(marks=(5, 20))
    found = snapshots(task, along, settings, seeded(), rows=2)
    assert found.shape == (2, 2 * len(task.portfolio), task.size)
    assert task.queries == 0
    for place, other in enumerate(task.portfolio.values()):
        before = other.losses(torch.zeros(1, task.size), seeded(1))
        after = other.losses(found[:1, 2 * place + 1], seeded(1))
        assert after < before


def test_queries_pick_the_best_snapshot():
    task = digits_task("f-macro")
    found = PortfolioSearch().run(task, Budget(12, 0), seeded(), rows=2)
    assert found.queries == 12 and task.queries == 24
    costs = task.observe(torch.cat([torch.zeros(1, task.size), found.phi]))
    assert (costs[1:] < costs[0]).all()


def test_impossible_settings_and_tasks_are_refused():
    with pytest.raises(ConfigError, match=r"in ascending order, got \(20, 5\)"):
        PortfolioSettings(marks=(20, 5))
    assert not PortfolioSearch().suits(QuadraticTask())

"""No harm: the wrapper of any method, and what it makes of proposals."""

from dataclasses import dataclass

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.methods.cma_es import CMAES
from metricopt.methods.contract import Method
from metricopt.methods.result import Budget, last_step
from metricopt.on_outputs.folds import check_on_folds
from metricopt.on_outputs.no_harm import RESERVED, NoHarm
from tests.metricopt.drawn import seeded
from tests.metricopt.on_outputs.outputs_task import digits_task, few, judged
from tests.metricopt.quadratic_task import QuadraticTask


@dataclass(frozen=True)
class Proposes(Method):
    """Proposes a phi without a query."""

    phi: torch.Tensor

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        return last_step(self.phi.expand(rows, 1, -1), shared_queries=0)


def test_what_a_search_queried_is_enough_to_cross_fit():
    task = digits_task("f-macro")
    before = judged(task, "f-macro", torch.zeros(1, task.size))
    found = NoHarm(CMAES()).run(task, Budget(62, 0), seeded())
    assert found.queries == task.queries <= 62
    # Which of the two depends on rounding.
    told = ("predicted from the", "identified as a function of the")
    assert any(words in found.evidence[0].reason for words in told)
    plain = CMAES().run(digits_task("f-macro"), Budget(62, 0), seeded())
    gain = judged(task, "f-macro", found.phi) - before
    assert gain > 0.03
    assert gain > judged(task, "f-macro", plain.phi) - before


def test_a_proposal_is_checked_where_nothing_explains_the_metric():
    task = QuadraticTask()
    good = NoHarm(Proposes(task.metric_minimum.float()))
    found = good.run(task, Budget(20, 0), seeded(), rows=2)
    assert torch.equal(found.phi, task.metric_minimum.float().expand(2, -1))
    assert 2 * found.queries == task.queries
    bad = NoHarm(Proposes(torch.full((task.size,), -2.0)))
    refused = bad.run(QuadraticTask(), Budget(20, 0), seeded())
    assert not refused.phi.any()
    assert "no evidence of a gain" in refused.evidence[0].reason


def test_the_check_pairs_parts_of_the_observe_split():
    task = digits_task("mcr")
    phi = 0.5 * torch.randn(1, task.size, generator=seeded())
    (check,) = check_on_folds(task, phi, seeded(1))
    assert task.queries == 10
    costs = task.observe(torch.cat([torch.zeros_like(phi), phi]))
    # The parts are equally large, so their mean is the error rate of all.
    torch.testing.assert_close(
        torch.tensor(check.gain), (costs[0] - costs[1]).float(), atol=1e-6, rtol=0
    )
    assert check.error > 0


def test_an_untouched_proposal_stays_untouched():
    task = digits_task("mcr", observe=few(60))
    found = NoHarm(Proposes(torch.zeros(task.size))).run(task, Budget(20, 0), seeded())
    assert not found.phi.any()


def test_a_budget_without_room_is_refused():
    with pytest.raises(ConfigError, match=f"takes up to {RESERVED} queries"):
        NoHarm(CMAES()).run(digits_task("mcr"), Budget(RESERVED, 0), seeded())

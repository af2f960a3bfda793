"""What a search ends with: a promise that comes true, or the next best that does."""

import math

import pytest
import torch

from metricopt.methods.attempts import Attempt
from metricopt.methods.result import Archive, Budget, Evidence
from metricopt.on_outputs.conclusion import Proposal, conclude
from metricopt.on_outputs.cross_fitting import CrossFitted
from metricopt.on_outputs.folds import FEWEST_QUERIES, LEVELS, QUERIES, check_on_folds
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

BAD = torch.full((QuadraticTask().size,), -2.0)


def promised(phi, second, *, least=0.0):
    """A proposal of phi, far better than it is, with the next best beside it."""
    fitted = CrossFitted(
        phi, "all of phi", 10, gain=0.5, error=0.01, predicted=0.1, own=0.5
    )
    evidence = Evidence("Identified. Gain .5.", 0.5, 0.01, 9)
    tried = (Attempt("one shift", phi, 0.1), Attempt("thresholds", phi + 9, 0.2))
    return Proposal(
        phi,
        evidence,
        fitted=fitted,
        second=second,
        least=least,
        obvious=tried,
        how="Identified.",
    )


def concluded(proposal, queries=30):
    task = QuadraticTask()
    archive = Archive(task, Budget(queries, 0), 1)
    return task, conclude(task, archive, [proposal], seeded())


def test_the_best_that_was_queried_stands_in_for_a_promise_that_does_not_come_true():
    good = QuadraticTask().metric_minimum.float()
    task, found = concluded(promised(BAD, good))
    assert torch.equal(found.phi[0], good)
    assert found.queries == task.queries == 2 + QUERIES
    (evidence,) = found.evidence
    assert "was predicted. The best phi" in evidence.reason
    assert (
        "The best phi that was queried takes its place. On 5 parts" in evidence.reason
    )
    # What was promised is of another phi.
    assert evidence.gain is None and evidence.error is None
    assert evidence.reason.startswith("Identified. The query that should confirm it")


def test_what_was_tried_by_hand_is_said_as_it_was_observed():
    task, found = concluded(promised(BAD, BAD / 2))
    queried, not_queried = found.obvious[0]
    assert queried.observed
    assert queried.cost == pytest.approx(task.cost(BAD[None]).item())
    assert not not_queried.observed and not_queried.cost == 0.2


def test_a_second_that_parts_do_not_confirm_is_not_taken():
    _, found = concluded(promised(BAD, BAD / 2))
    assert not found.phi.any()
    assert "no evidence of a gain. The untouched network" in found.evidence[0].reason


def test_what_is_better_than_all_queries_is_checked_though_it_promised_more():
    task = QuadraticTask()
    better = 0.6 * task.metric_minimum.float()
    cost = task.cost(better[None]).item()
    proposal = promised(better, BAD, least=cost + 0.01)
    assert torch.equal(concluded(proposal)[1].phi[0], better)


@pytest.mark.parametrize("second", [None, torch.zeros(BAD.shape)])
def test_without_a_second_the_network_is_kept(second):
    task, found = concluded(promised(BAD, second))
    assert not found.phi.any()
    assert task.queries == 2


@pytest.mark.parametrize(("left", "parts"), [(4, 2), (6, 3), (9, 4), (10, 5), (20, 5)])
def test_a_check_takes_as_many_parts_as_queries_allow(left, parts):
    good = QuadraticTask().metric_minimum.float()
    task, found = concluded(promised(BAD, good), queries=2 + left)
    assert task.queries == 2 + 2 * parts
    assert f"On {parts} parts" in found.evidence[0].reason


def test_fewer_queries_than_two_parts_take_are_no_evidence():
    good = QuadraticTask().metric_minimum.float()
    task, found = concluded(promised(BAD, good), queries=1 + FEWEST_QUERIES)
    assert task.queries == 2
    assert not found.phi.any()
    assert (
        "Fewer than the 4 queries that check it were left" in found.evidence[0].reason
    )


def test_chance_passes_as_often_whatever_the_number_of_parts():
    gains = torch.randn(100_000, 5, generator=seeded())
    shares = []
    for parts, level in LEVELS.items():
        some = gains[:, :parts]
        shown = some.mean(1) > level * some.std(1) / math.sqrt(parts)
        shares.append(shown.double().mean().item())
    assert shares == pytest.approx([0.058] * len(shares), abs=0.004)


def test_fewer_parts_cost_fewer_queries():
    task = QuadraticTask()
    (check,) = check_on_folds(task, BAD[None], seeded(), queries=7)
    assert (check.parts, task.queries) == (3, 6)
    assert not check.is_shown

"""Runs on networks that a method trained: what they note, and what they pay for."""

from collections import Counter

import pytest

from benchmarks.problems.choices import Adapted, Chosen, NetworkCost, Point, charged
from tests.benchmarks.arms.arm_cases import assert_values, record_of
from tests.benchmarks.problems.pipeline_cases import smoke_spec

STEPS = 3 * (1294 // 32)
"""Three epochs of what digits leave for training."""


def record(row):
    return record_of(smoke_spec("ala-table1", row))


@pytest.mark.parametrize("row", ["ce", "ala"])
def test_a_network_is_handed_over_with_what_it_cost(row):
    found = record(row)
    assert_values(found.test["mcr"], 1)
    assert found.gradient_steps == STEPS
    assert found.seconds["network"] > 0
    assert len(found.notes["course_mcr"]) == 3
    assert found.queries == found.shared_queries == sum(found.queried.values())
    # ALA measures its metric twice in each of the periods that it rewards.
    periods = STEPS // 20 - 1
    assert found.queries == (2 * periods if row == "ala" else 0)
    assert ("rewards" in found.notes) == (row == "ala")


def test_metricopt_on_top_pays_for_the_network_too():
    alone, network = record("ce+metricopt"), record("ala")
    found = record("ala+metricopt")
    assert found.queries == alone.queries + network.queries
    assert found.gradient_steps == alone.gradient_steps
    assert found.gradient_steps == STEPS + 10
    assert Counter(found.queried) == Counter(alone.queried) + Counter(network.queried)
    assert found.trace[0].queries >= network.queries


def test_a_choice_is_charged_with_its_network():
    phi = Adapted(None)
    chosen = Chosen(
        phi,
        queries=5,
        shared_queries=2,
        gradient_steps=7,
        evaluations={"observe": 8},
        points=(Point(3, 4, None, phi),),
        seconds={"value function": 1.0},
    )
    assert charged(chosen, NetworkCost()) == chosen
    found = charged(chosen, NetworkCost({"observe": 10, "train": 1}, 100, 2.5))
    assert (found.queries, found.shared_queries) == (16, 13)
    assert found.gradient_steps == 107
    assert found.queried == {"observe": 18, "train": 1}
    assert (found.points[0].step, found.points[0].queries) == (103, 15)
    assert found.seconds == {"value function": 1.0, "network": 2.5}

"""Embedding networks that ALA trains: start, what is kept, and policies of others."""

import json

import pytest
import torch

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.retrieval import tiers
from benchmarks.problems.retrieval.method_networks import (
    FRAMEWORKS,
    SIZES,
    MethodRetrieval,
    backbone,
)
from benchmarks.problems.retrieval.theta import RetrievalThetaSpec
from benchmarks.rows.embedding_methods import LABELS
from benchmarks.runs.codec import digest_of, encode
from tests.source_tree import ROOT

WEIGHTS = 1_603
"""Of a policy with 13 features."""


def spec_of(method, subject="photographs"):
    own = backbone("smoke", method, subject)
    return RetrievalThetaSpec(SIZES["smoke"].of[subject].problem, own, 0)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_methods_of_a_framework_begin_with_the_same_weights(framework):
    methods = [name for name in LABELS if name.startswith(framework)]
    specs = [spec_of(method) for method in methods]
    first, *others = (spec.fresh().state_dict() for spec in specs)
    for other in others:
        assert all(torch.equal(other[name], value) for name, value in first.items())
    assert len({spec.digest for spec in specs}) == len(methods) > 1
    assert len({spec.name for spec in specs}) == len(methods)


def test_a_training_keeps_its_policy_and_counts_its_queries():
    """20 steps, a decision every 4: four rewarded."""
    facts = spec_of("margin-mixture").train().facts
    assert len(facts["learned"]) == WEIGHTS
    assert len(facts["notes"]["rewards"]) == 3
    assert facts["queries"] == {"observe": 4}
    assert len(facts["notes"]["course_observe_recall"]) == 4
    assert facts["gradient_steps"] == 20
    alone = spec_of("margin-mixture-noise").train().facts
    assert alone["queries"] == {}


@pytest.mark.parametrize("subject", ["photographs", "faces"])
def test_a_policy_of_the_other_problem_is_used_as_it_is(subject):
    spec = spec_of("margin-mixture-transfer", subject)
    (teacher,) = spec.warm
    other = {"photographs": "faces", "faces": "photographs"}[subject]
    assert teacher == spec_of("margin-mixture", other)
    facts = spec.train().facts
    assert facts["learned"] == teacher.trained_here().facts["learned"]
    assert facts["queries"] == {}
    assert spec.digest != spec_of("margin-mixture", subject).digest


def test_the_teacher_of_a_policy_is_trained_before_it():
    problem = MethodRetrieval.of("smoke").by("margin-mixture-transfer")
    first, second = make_pipeline(problem.pipeline(), 0).prerequisites
    assert first == spec_of("margin-mixture", "faces")
    assert second.warm == [first]
    assert encode(second)["backbone"]["policy_of"]["problem"]["side"] == 32


def test_released_networks_are_still_found():
    own = tiers.backbone("local", "fastap")
    spec = RetrievalThetaSpec(tiers.PROBLEMS["local"], own, 0)
    record = json.loads((ROOT / f"results/weights/{spec.name}.json").read_text())
    assert spec.digest == digest_of(record["spec"])


@pytest.mark.parametrize("tier", SIZES)
def test_all_methods_take_as_many_steps(tier):
    made = [backbone(tier, method) for method in LABELS]
    assert len({repr(network.training) for network in made}) == 1
    settings = [network.taught.method.settings for network in made if network.taught]
    assert [each["framework"] for each in settings] == ["triplet"] + ["margin"] * 5
    assert len(made) - len(settings) == len(FRAMEWORKS)

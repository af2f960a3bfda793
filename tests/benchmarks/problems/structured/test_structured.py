"""Structured problems: networks by method, killed trainings, metrics and pictures."""

from dataclasses import replace

import pytest
import torch

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.structured.contract import StructuredProblem, modality_of
from benchmarks.problems.structured.tiers import NETWORKS, Structured
from benchmarks.tables.registry import find_experiment
from metricopt.errors import ConfigError, DataError

MODALITIES = tuple(NETWORKS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))


def spec_of(method=None, modality="poses", replicate=0):
    problem = Structured.at(modality, "smoke")
    problem = problem.by(method or problem.method)
    return make_pipeline(problem.pipeline(), replicate).theta_spec


class Killed(KeyboardInterrupt):
    """The process is gone."""


@pytest.mark.parametrize("modality", MODALITIES)
def test_a_killed_training_ends_as_one_that_was_not(modality, tmp_path, monkeypatch):
    spec = spec_of("reloss", modality)
    short = replace(spec.backbone.training, epochs=3)
    spec = replace(spec, backbone=replace(spec.backbone, training=short))
    expected = spec.train()
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "killed"))
    for after in (2, 3):  # in the first training, then in the second
        seen = []

        def die(epoch, seen=seen, after=after):
            seen.append(epoch.number)
            if len(seen) == after:
                raise Killed

        with pytest.raises(Killed):
            spec.train(die)
    found = spec.train()
    assert found.facts["weights"] == expected.facts["weights"]
    timeless = {"seconds", "core_seconds"}
    for name, value in expected.facts.items():
        assert name in timeless or found.facts[name] == value, name


@pytest.mark.parametrize("modality", MODALITIES)
def test_all_methods_begin_with_the_same_weights(modality):
    usual = Structured.at(modality, "smoke").method
    specs = [spec_of(name, modality) for name in (usual, "reloss", "reloss-anchored")]
    states = [spec.fresh().state_dict() for spec in specs]
    for other in states[1:]:
        assert all(torch.equal(other[k], v) for k, v in states[0].items())
    assert len({spec.digest for spec in specs}) == len({s.name for s in specs}) == 3


@pytest.mark.parametrize("modality", MODALITIES)
def test_replicates_observe_others_and_share_the_test(modality):
    first, second = (
        spec_of(modality=modality, replicate=replicate).splits() for replicate in (0, 1)
    )
    assert torch.equal(first.test.targets, second.test.targets)
    assert not torch.equal(first.observe.targets[:5], second.observe.targets[:5])


def test_series_of_people_stay_together():
    splits = spec_of().splits()
    series = [
        set(part._source.series[part._places].tolist())
        for part in (splits.train, splits.observe)
    ]
    assert not series[0] & series[1] and all(series)


@pytest.mark.parametrize("tier", ["paper", "local", "smoke"])
@pytest.mark.parametrize("experiment", ["reloss-pose", "reloss-reading"])
def test_every_tier_is_planned(tier, experiment):
    specs = find_experiment(experiment).specs(tier, None, None)
    trained = {spec.row for spec in specs if spec.arm.kind == "theta"}
    assert {"reloss", "reloss-anchored", "reloss-regression"} < trained
    assert len(trained) == 4
    pictured = [spec for spec in specs if spec.pictured]
    assert {spec.replicate for spec in pictured} == {0}
    methods = {spec.arm.name for spec in specs if spec.arm.kind == "theta"}
    assert methods == {"usual-loss", "reloss"}


def test_what_is_no_problem_is_refused():
    with pytest.raises(ConfigError, match="expected one of mse, reloss"):
        Structured.at("poses", "smoke").by("ala")
    with pytest.raises(ConfigError, match="height and width, got"):
        problem = StructuredProblem("poses", "drawn-people", (64,), 0.2)
        modality_of(problem).splits(problem, 0)
    with pytest.raises(ConfigError, match="multiples of 16"):
        problem = StructuredProblem("poses", "drawn-people", (64, 40), 0.2)
        modality_of(problem).splits(problem, 0)
    with pytest.raises(DataError, match="has 24 series of people"):
        problem = StructuredProblem("poses", "drawn-people", (64, 48), 0.001)
        modality_of(problem).splits(problem, 0)

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
EXPERIMENTS = ["reloss-pose", "reloss-reading", "reloss-translation"]


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
    short = replace(spec.backbone.training, epochs=2)
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


def test_forms_of_reloss_record_one_training(tmp_path, monkeypatch):
    first, second = (spec_of(name, "spans") for name in ("reloss", "reloss-anchored"))
    epochs, expected = first.recipe.epochs, second.train()
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "another"))
    first.train()
    trained = []
    found = second.train(lambda epoch: trained.append(epoch.number))
    assert trained == list(range(1, epochs + 1))  # the last training alone
    assert found.facts["weights"] == expected.facts["weights"]
    for name in ("queries", "gradient_steps", "notes"):
        assert found.facts[name] == expected.facts[name]
    # Other outputs are another recording, and so are those of another replicate.
    method = second.taught.method
    fewer = replace(method, settings=method.settings | {"recorded": 100})
    taught = replace(second.taught, method=fewer)
    others = (
        replace(second, backbone=replace(second.backbone, taught=taught)),
        spec_of("reloss", "spans", replicate=1),
    )
    for other in others:
        trained.clear()
        other.train(lambda epoch: trained.append(epoch.number))
        assert len(trained) == 2 * epochs


def test_a_rate_of_its_own_does_not_change_what_is_recorded():
    spec = spec_of("reloss", "spans")
    recipe = replace(spec.recipe, rate=0.5)
    faster = replace(spec, backbone=replace(spec.backbone, training=recipe))
    longer = replace(recipe, epochs=9)
    slower = replace(spec, backbone=replace(spec.backbone, training=longer))
    assert spec._start() == faster._start() != slower._start()
    assert spec._start() == spec_of("reloss-regression", "spans")._start()


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
    # Pieces of sentences are those of a vocabulary that a replicate has for itself.
    known = "pairs" if modality == "sentences" else "targets"
    parts = [
        [list(getattr(part, known)[:5]) for part in (one.test, one.observe)]
        for one in (first, second)
    ]
    for place, alike in enumerate((True, False)):
        pairs = zip(parts[0][place], parts[1][place], strict=True)
        assert all(_same(*pair) for pair in pairs) == alike


def _same(one, other):
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_series_of_people_stay_together():
    splits = spec_of().splits()
    series = [
        set(part._source.series[part._places].tolist())
        for part in (splits.train, splits.observe)
    ]
    assert not series[0] & series[1] and all(series)


@pytest.mark.parametrize("tier", ["paper", "local", "smoke"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_tier_is_planned(tier, experiment):
    specs = find_experiment(experiment).specs(tier, None, None)
    trained = {spec.row for spec in specs if spec.arm.kind == "theta"}
    assert {"reloss", "reloss-anchored", "reloss-regression"} < trained
    assert len(trained) == 4
    pictured = [spec for spec in specs if spec.pictured]
    assert {spec.replicate for spec in pictured} == {0}
    methods = {spec.arm.name for spec in specs if spec.arm.kind == "theta"}
    assert methods == {"usual-loss", "reloss"}


def test_a_table_may_have_several_data_sets():
    specs = find_experiment("reloss-translation").specs("local", None, None)
    by_column = {}
    for spec in specs:
        by_column.setdefault(spec.column, set()).add(spec.row)
    assert list(by_column) == ["multi30k-en-de", "ro-sts-en-ro", "ro-sts-ro-en"]
    assert len({frozenset(rows) for rows in by_column.values()}) == 1
    columns = find_experiment("reloss-translation").layout("local").columns
    printed = {column.runs: column.paper_column for column in columns}
    assert printed["multi30k-en-de"] is None
    assert printed["ro-sts-ro-en"] == "wmt16-ro-en/bleu"
    assert all(column.not_comparable for column in columns)


def test_records_say_how_bleu_was_measured():
    problem = Structured.at("sentences", "smoke")
    pipeline = make_pipeline(problem.pipeline(), 0)
    assert pipeline.modality.measured["sacrebleu"].startswith("nrefs:1|case:mixed")
    assert Structured.at("poses", "smoke").modality.measured == {}


def test_what_is_no_problem_is_refused():
    with pytest.raises(ConfigError, match="expected one of mse, reloss"):
        Structured.at("poses", "smoke").by("ala")
    with pytest.raises(ConfigError, match="height and width; got"):
        problem = StructuredProblem("poses", "drawn-people", (64,), 0.2)
        modality_of(problem).splits(problem, 0)
    with pytest.raises(ConfigError, match="multiples of 16"):
        problem = StructuredProblem("poses", "drawn-people", (64, 40), 0.2)
        modality_of(problem).splits(problem, 0)
    with pytest.raises(DataError, match="has 24 series of people"):
        problem = StructuredProblem("poses", "drawn-people", (64, 48), 0.001)
        modality_of(problem).splits(problem, 0)

"""The retrieval pipeline: splits, network, adapter, tasks and judging."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.nn.functional import normalize

from benchmarks.arms.contract import run_arm
from benchmarks.problems.choices import Adapted
from benchmarks.problems.contract import SealedError
from benchmarks.problems.pretrained.theta import is_ready, release_theta, trained_here
from benchmarks.problems.retrieval.pictured import NEIGHBOURS, pictured
from benchmarks.problems.retrieval.problem import load_problem
from benchmarks.problems.retrieval.settings import EmbeddingTraining, RetrievalProblem
from benchmarks.problems.retrieval.theta import (
    embed,
    find_theta,
    fresh,
    start_at_components,
)
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.retrieval.retrieval_cases import pipeline_of, spec_of


@cache
def made():
    return pipeline_of()


@pytest.fixture
def shapes():
    """One pipeline for all tests, made in their cache."""
    return made()


def classes_of(split):
    return set(split.targets.tolist())


def test_the_parts_share_no_class(shapes):
    parts = [classes_of(getattr(shapes.problem, n)) for n in ("observe", "test")]
    assert not parts[0] & parts[1]
    train = shapes.problem.train
    assert classes_of(train) == set(range(shapes.problem.classes))
    assert len(shapes.problem.groups) == len(train)


def test_replicates_observe_other_classes_and_test_the_same():
    problem = pipeline_of().settings.problem
    one, other = (load_problem(problem, replicate) for replicate in (0, 1))
    assert classes_of(one.observe) != classes_of(other.observe)
    assert torch.equal(one.test.targets, other.test.targets)
    assert torch.equal(one.test.batch(slice(4)), other.test.batch(slice(4)))


def test_a_share_that_leaves_no_class_is_named(shapes):
    tiny = replace(shapes.settings.problem, observed=0.01)
    with pytest.raises(DataError, match=r"share of 0.01 is observed: expected 2 or"):
        load_problem(tiny, 0)
    with pytest.raises(ConfigError, match=r"observed in \(0, 1\), got 32 and 1.0"):
        RetrievalProblem("drawn-shapes", 32, 1.0)
    with pytest.raises(ConfigError, match=r"epochs >= 1.*got 0"):
        EmbeddingTraining(0)


def test_embeddings_have_unit_length_and_the_adapter_is_cut(shapes):
    outputs = shapes.outputs()
    assert outputs.norm(dim=1) == pytest.approx(1, abs=1e-4)
    assert shapes.adapter.is_cut
    assert shapes.adapter.size == 128


def test_training_raises_recall_above_that_of_random_weights(shapes):
    metric = shapes.metric(Unit("recall@1"))
    split = shapes.splits.observe
    trained = metric.value(shapes.outputs(), split.targets)
    network = shapes.network_start(from_theta=False).eval()
    with torch.no_grad():
        start = metric.value(network(split.batch(slice(None))), split.targets)
    assert trained > start


def test_a_network_is_released_with_its_recall(shapes, monkeypatch, tmp_path):
    spec = shapes.theta_spec
    artifact = trained_here(spec)
    path = release_theta(spec)
    assert path.name == "drawn-shapes-tiny-fastap-r0.safetensors"
    told = spec.told(artifact.facts)
    assert told == {"recall@1 on observe": f"{artifact.facts['observe_recall']:.4f}"}
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
    assert is_ready(spec)
    found = find_theta(spec, shapes.problem.classes)
    assert found.digest == shapes.pretrained.digest


def test_a_query_costs_what_the_metric_says(shapes):
    metric = shapes.metric(Unit("mean-recall"))
    task = shapes.task(metric)
    cost = task.observe(torch.zeros(1, task.size)).item()
    value = metric.value(shapes.outputs(), shapes.splits.observe.targets)
    assert cost == pytest.approx(1 - value, abs=1e-6)
    assert task.queries == 1
    assert task.statistics.kind.names() == ("neighbours",)
    assert set(task.portfolio) >= {"fastap", "recall", "multi-similarity", "triplet"}


def test_the_test_split_is_sealed(shapes):
    with shapes.sealed(), pytest.raises(SealedError):
        shapes.evaluate([], "test", {})


def test_metricopt_on_outputs_runs_and_is_judged_by_all_metrics(shapes):
    spec = spec_of("metricopt-outputs")
    chosen = run_arm(spec, shapes)
    (values,) = shapes.evaluate([chosen.choice], "test", shapes.metrics(spec.metrics))
    assert set(values) == {unit.label for unit in spec.metrics}
    assert all(0 <= v <= 1 for row in values.values() for v in row.tolist())
    assert values["recall@1"].item() <= values["recall@10"].item()


def test_the_picture_holds_queries_that_changed(shapes):
    generator = torch.Generator().manual_seed(0)
    phi = 2 * torch.randn(1, 128, generator=generator)
    notes = shapes.pictured(Adapted(phi))
    right = notes["picture_right"]
    assert {len(line) for line in right} == {2 * NEIGHBOURS}
    assert all(line[0] != line[NEIGHBOURS] for line in right)
    gained = sum(not line[0] for line in right)
    assert gained == min(3, notes["picture_counts"][0])
    assert len(right) - gained == min(3, notes["picture_counts"][1])


def test_nothing_changes_between_equal_embeddings(shapes):
    images = shapes.splits.test
    generator = torch.Generator().manual_seed(1)
    same = normalize(torch.randn(len(images), 8, generator=generator), dim=1)
    notes = pictured(images, same, same)
    assert notes["picture_counts"] == [0, 0]
    assert notes["picture_right"] == []


def test_principal_components_are_centred_uncorrelated_and_half_whitened(shapes):
    images = shapes.problem.train
    network = fresh(shapes.theta_spec).eval()
    features = embed(network[:-2], images).double()
    start_at_components(network, images)
    found = embed(network[:-1], images).double()
    assert found.mean(0).abs().max() < 1e-4
    covariance = torch.cov(found.T, correction=0)
    variances = covariance.diagonal()
    assert (covariance - variances.diag()).abs().max() < 1e-3 * variances.max()
    values = torch.linalg.eigvalsh(torch.cov(features.T, correction=0))
    expected = values[-len(variances) :].sqrt()
    torch.testing.assert_close(variances, expected, rtol=1e-3, atol=1e-4)


def trained_with(spec, **changes):
    training = replace(spec.backbone.training, epochs=1, **changes)
    return replace(spec, backbone=replace(spec.backbone, training=training))


def test_frozen_modules_keep_their_weights(shapes):
    spec = trained_with(shapes.theta_spec, frozen=("conv1",))
    start, trained = fresh(spec).state_dict(), trained_here(spec).tensors
    assert torch.equal(trained["conv1.weight"], start["conv1.weight"].half())
    assert not torch.equal(trained["conv2.weight"], start["conv2.weight"].half())


def test_an_unknown_frozen_module_is_named(shapes):
    spec = trained_with(shapes.theta_spec, frozen=("conv9",))
    with pytest.raises(ConfigError, match=r"modules of conv1, .*got 'conv9'"):
        trained_here(spec)


@pytest.mark.parametrize("area", [0.0, 1.5])
def test_a_share_of_the_area_that_cannot_be_is_named(area):
    with pytest.raises(
        ConfigError, match=rf"least_area must be in \(0, 1\], got {area}"
    ):
        EmbeddingTraining(1, least_area=area)

"""The retrieval pipeline: splits, embeddings, picture, first embedding layer."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.nn.functional import normalize

from benchmarks.problems.choices import Adapted
from benchmarks.problems.pictured import NEIGHBOURS, changed_queries
from benchmarks.problems.pretrained.weights import predicted
from benchmarks.problems.retrieval.settings import RetrievalProblem
from benchmarks.problems.retrieval.theta import load_splits, start_at_components
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline


@cache
def made():
    return smoke_pipeline("table5", "untouched", block="fastap")


@pytest.fixture
def shapes():
    """One pipeline for all tests, made in their cache."""
    return made()


def classes_of(split):
    return set(split.targets.tolist())


def test_the_parts_share_no_class(shapes):
    parts = [classes_of(getattr(shapes.whole, n)) for n in ("observe", "test")]
    assert not parts[0] & parts[1]
    train = shapes.whole.train
    assert classes_of(train) == set(range(shapes.whole.classes))
    assert len(shapes.whole.groups) == len(train)


def test_replicates_observe_other_classes_and_test_the_same():
    problem = made().settings.problem
    one, other = (load_splits(problem, replicate) for replicate in (0, 1))
    assert classes_of(one.observe) != classes_of(other.observe)
    assert torch.equal(one.test.targets, other.test.targets)
    assert torch.equal(one.test.batch(slice(4)), other.test.batch(slice(4)))


def test_a_share_that_leaves_no_class_is_named(shapes):
    tiny = replace(shapes.settings.problem, observed=0.01)
    with pytest.raises(DataError, match=r"share of 0.01 is observed: expected 2 or"):
        load_splits(tiny, 0)
    with pytest.raises(ConfigError, match=r"observed in \(0, 1\), got observed=1.0"):
        RetrievalProblem("drawn-shapes", 32, 1.0)


def test_embeddings_have_unit_length(shapes):
    assert shapes.outputs().norm(dim=1) == pytest.approx(1, abs=1e-4)


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
    notes = changed_queries(images, same, same)
    assert notes["picture_counts"] == [0, 0]
    assert notes["picture_right"] == []


def test_principal_components_are_centred_uncorrelated_and_half_whitened(shapes):
    images = shapes.whole.train
    network = shapes.theta_spec.begun().eval()
    features = predicted(network[:-2], images, 128).double()
    start_at_components(network, images)
    found = predicted(network[:-1], images, 128).double()
    assert found.mean(0).abs().max() < 1e-4
    covariance = torch.cov(found.T, correction=0)
    variances = covariance.diagonal()
    assert (covariance - variances.diag()).abs().max() < 1e-3 * variances.max()
    values = torch.linalg.eigvalsh(torch.cov(features.T, correction=0))
    expected = values[-len(variances) :].sqrt()
    torch.testing.assert_close(variances, expected, rtol=1e-3, atol=1e-4)

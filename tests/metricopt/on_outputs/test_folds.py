"""Folds and samples of examples, and of classes where examples are compared."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from metricopt.adapters.auto import auto_adapter
from metricopt.on_outputs.folds import (
    bootstrap,
    folds_of,
    lacking,
    parts_of,
    stratified_folds,
    stratified_sample,
)
from metricopt.reading.callables import make_metric
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.detection import DetectionStatistics
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.recorded_task import RecordedTask
from metricopt.tasks.sampling import Split
from tests.metricopt.drawn import seeded
from tests.metricopt.embedding_network import embedding_task, observed
from tests.metricopt.quadratic_task import QuadraticTask


@pytest.mark.parametrize("classes", [2, 7])
def test_folds_are_drawn_and_alike_in_size_and_labels(classes):
    targets = torch.randint(classes, (203,), generator=seeded())
    folds, same, other = (stratified_folds(targets, 5, seeded(s)) for s in (1, 1, 2))
    assert torch.equal(folds, same) and not torch.equal(folds, other)
    sizes = torch.bincount(folds, minlength=5)
    assert len(folds) == 203 and sizes.max() - sizes.min() <= 1
    for label in range(classes):
        counts = torch.bincount(folds[targets == label], minlength=5)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("size", [1, 100, 202, 203])
def test_a_sample_has_its_size_and_is_alike_in_labels(size):
    targets = torch.randint(7, (203,), generator=seeded())
    places = stratified_sample(targets, size, seeded(1))
    assert torch.equal(places, places.unique()) and len(places) == size
    counts = targets[places].bincount(minlength=7)
    expected = targets.bincount(minlength=7) * size / 203
    assert (counts - expected).abs().max() < 1


def test_classes_stay_together_in_folds_and_parts():
    statistics = observed(classes=20, each=4)
    folds = folds_of(statistics, 5, seeded(0))
    for label in statistics.targets.unique():
        assert len(folds[statistics.targets == label].unique()) == 1
    assert folds.bincount().tolist() == [16] * 5
    parts = parts_of(embedding_task(classes=20, each=4), 5, seeded(0))
    assert sorted(torch.cat(parts).tolist()) == list(range(80))
    assert [len(part) for part in parts] == [16] * 5


def test_bootstrap_samples_draw_classes():
    statistics = observed(classes=20, each=4)
    counts = bootstrap(statistics, 30, seeded(1))
    assert counts.shape == (31, 80)
    assert (counts[0] == 1).all()
    assert (counts.sum(1) == 80).all()
    for label in statistics.targets.unique():
        own = counts[:, statistics.targets == label]
        assert (own == own[:, :1]).all()
    assert len(counts[1:].unique(dim=0)) == 30


def clustered():
    """Rare labels [120], and 40 clusters of 1 to 5 examples, 9 of which have some."""
    clusters = torch.arange(40).repeat_interleave(torch.arange(40) % 5 + 1)
    targets = (clusters < 9) & (clusters % 2 == torch.arange(120) % 2)
    return targets.long(), clusters


def test_clusters_stay_together_in_folds_alike_in_rare_labels():
    targets, clusters = clustered()
    folds = stratified_folds(targets, 3, seeded(), clusters)
    names = torch.arange(40)
    own = torch.stack([folds[clusters == name].unique() for name in names])[:, 0]
    assert own.bincount().tolist() == [14, 13, 13]
    rare = torch.stack([targets[clusters == name].any() for name in names])
    counts = own[rare].bincount(minlength=3)
    assert rare.sum() > 6 and counts.max() - counts.min() <= 1
    other = stratified_folds(targets, 3, seeded(1), clusters)
    assert not torch.equal(folds, other)


class Clustered(QuadraticTask):
    """A task without statistics, whose examples belong together by sevens."""

    clusters = torch.arange(100) // 7


def test_clusters_stay_together_in_parts_without_statistics():
    task = Clustered()
    parts = parts_of(task, 5, seeded())
    assert sorted(torch.cat(parts).tolist()) == list(range(100))
    assert len(torch.cat([task.clusters[part].unique() for part in parts])) == 15


def test_clusters_stay_together_in_parts_and_bootstrap_samples():
    targets, clusters = clustered()
    network = nn.Linear(4, 2)
    split = Split(torch.randn(120, 4, generator=seeded()), targets)
    task = NetworkTask(
        auto_adapter(network, split.inputs[:2]),
        nn.CrossEntropyLoss(),
        make_metric("f1"),
        train=split,
        observe=split,
        drawing=Drawing(clusters=clusters),
    )
    parts = parts_of(RecordedTask(task), 5, seeded())
    assert sorted(torch.cat(parts).tolist()) == list(range(120))
    assert len(torch.cat([clusters[part].unique() for part in parts])) == 40
    counts = bootstrap(task.statistics.of_offsets(), 30, seeded())
    assert (counts[0] == 1).all() and (counts.sum(1) != 120).any()
    for name in range(40):
        own = counts[:, clusters == name]
        assert (own == own[:, :1]).all()


@pytest.mark.parametrize("samples", [1, 20, 47])
def test_bootstrap_samples_of_many_examples_take_little_memory(samples, monkeypatch):
    whole, sizes, draw = seeded(1), [], torch.randint
    drawn = draw(303, (samples, 303), generator=whole)
    own = torch.stack([row.bincount(minlength=303) for row in drawn])

    def drawing(high, size, **settings):
        sizes.append(math.prod(size))
        return draw(high, size, **settings)

    monkeypatch.setattr(torch, "randint", drawing)
    generator = seeded(1)
    many = observed(classes=3, each=101)
    monkeypatch.setattr(type(many), "compares", False)
    counts = bootstrap(many, samples, generator)
    assert torch.equal(counts, torch.cat([torch.ones(1, 303), own]).to(counts))
    assert torch.equal(generator.get_state(), whole.get_state())
    assert counts.element_size() == 2 and max(sizes) <= 20 * 303


@pytest.mark.parametrize(
    ("classes", "each", "said"),
    [(20, 4, ""), (4, 5, "20 examples"), (9, 10, "9 classes")],
)
def test_what_is_too_small_is_said(classes, each, said):
    found = lacking(observed(classes=classes, each=each))
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("images", "each", "difficult", "said"),
    [
        (41, 3, 0, ""),
        (10, 5, 0, ""),
        (10, 4, 0, "40 objects"),
        (9, 30, 0, "9 images"),
        (60, 2, 2, "0 objects"),
    ],
)
def test_images_are_as_many_as_their_objects_and_go_together(
    images, each, difficult, said
):
    truths = torch.ones(images, each, 6)
    truths[..., 5] = 0.0
    truths[:, :difficult, 5] = 1.0
    kind = SeveralStatistics((DetectionStatistics(),))
    found = lacking(SimpleNamespace(targets=truths, kind=kind, clusters=None))
    assert said in found
    assert bool(found) == bool(said)

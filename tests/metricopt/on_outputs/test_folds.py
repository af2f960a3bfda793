"""Folds and samples of examples, and of classes where examples are compared."""

import math
from types import SimpleNamespace

import pytest
import torch

from metricopt.on_outputs.folds import (
    bootstrap,
    folds_of,
    lacking,
    parts_of,
    stratified_folds,
    stratified_sample,
)
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.detection import DetectionStatistics
from tests.metricopt.drawn import seeded
from tests.metricopt.embedding_network import embedding_task, observed


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
    found = lacking(SimpleNamespace(targets=truths, kind=kind))
    assert said in found
    assert bool(found) == bool(said)

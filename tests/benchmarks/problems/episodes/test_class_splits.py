"""Splits of classes: by name, disjoint, of the sizes of their protocols."""

from itertools import combinations

import pytest
import torch

from benchmarks.data.few_shot.contract import PARTS, ClassImages
from benchmarks.data.files.readers import FolderReader
from benchmarks.problems.episodes.class_splits import CLASS_SPLITS
from metricopt.errors import ConfigError


@pytest.fixture
def images(tmp_path):
    """A maker of a data set without images, of classes in given parts."""

    def make(counts, *, parts=True):
        names = [part for part, n in zip(PARTS, counts, strict=True) for _ in range(n)]
        classes = tuple(f"c{number}" for number in range(len(names)))
        given = tuple(names) if parts else ()
        known = ("mini", "", (), FolderReader(tmp_path))
        return ClassImages(*known, classes, torch.empty(0).long(), given, 28, False)

    return make


def split(name, images, seed=0):
    return CLASS_SPLITS.get(name)(images, torch.Generator().manual_seed(seed))


def sizes(found):
    return tuple(len(found[part]) for part in PARTS)


@pytest.mark.parametrize("name", ["given", "redrawn", "held-out-fifth"])
def test_parts_are_disjoint_and_hold_all_classes(name, images):
    found = split(name, images((64, 0 if name == "held-out-fifth" else 16, 20)))
    for one, other in combinations(PARTS, 2):
        assert not set(found[one].tolist()) & set(found[other].tolist())
    every = torch.cat([found[part] for part in PARTS])
    assert every.sort().values.tolist() == [*range(len(every))]
    assert all(own.tolist() == sorted(own.tolist()) for own in found.values())
    assert len(every) == (84 if name == "held-out-fifth" else 100)


def test_given_parts_are_those_of_the_data_set(images):
    found = split("given", images((3, 2, 1)))
    assert {part: own.tolist() for part, own in found.items()} == {
        "train": [0, 1, 2],
        "val": [3, 4],
        "test": [5],
    }


def test_redrawn_parts_are_as_large_and_mixed(images):
    first, second = (split("redrawn", images((64, 16, 20)), seed) for seed in (0, 1))
    assert sizes(first) == sizes(second) == (64, 16, 20)
    assert first["test"].tolist() != second["test"].tolist()
    assert min(first["test"].tolist()) < 64


def test_a_fifth_of_the_classes_to_train_validates_and_the_test_stays(images):
    first, second = (
        split("held-out-fifth", images((192, 0, 50)), seed) for seed in (0, 1)
    )
    assert sizes(first) == (154, 38, 50)
    assert first["test"].tolist() == second["test"].tolist() == [*range(192, 242)]
    assert first["val"].tolist() != second["val"].tolist()
    assert max(first["val"].tolist()) < 192


def test_maml_draws_from_all_characters(images):
    found = split("maml-omniglot", images((964, 0, 659), parts=False))
    assert sizes(found) == (1_100, 100, 423)
    assert len(set(torch.cat([*found.values()]).tolist())) == 1_623


def test_the_same_seed_makes_the_same_split(images):
    given = images((964, 0, 659), parts=False)
    first, second, third = (split("maml-omniglot", given, seed) for seed in (4, 4, 5))
    assert torch.equal(first["test"], second["test"])
    assert not torch.equal(first["test"], third["test"])


@pytest.mark.parametrize("name", ["given", "redrawn", "held-out-fifth"])
def test_a_data_set_without_parts_is_refused(name, images):
    with pytest.raises(ConfigError, match="mini does not divide its classes: expected"):
        split(name, images((5, 5, 5), parts=False))


def test_too_few_classes_are_refused(images):
    with pytest.raises(ConfigError, match="expected more than 1,200 classes, got 242"):
        split("maml-omniglot", images((192, 0, 50)))

"""Strata: parts of a split are alike in labels, in rare labels, and in numbers."""

import torch
from sklearn.datasets import load_diabetes

from metricopt.on_outputs.folds import stratified_folds
from metricopt.statistics.strata import (
    BINS,
    strata_of_label_sets,
    strata_of_labels,
    strata_of_numbers,
)
from tests.metricopt.drawn import seeded

SHARES = (0.4, 0.2, 0.1, 0.05, 0.025)
FOLDS = 5


def test_parts_hold_rare_labels_alike():
    targets = (torch.rand(400, 5, generator=seeded()) < torch.tensor(SHARES)).float()
    folds = stratified_folds(strata_of_label_sets(targets), FOLDS, seeded(1))
    counts = torch.stack([targets[folds == fold].sum(0) for fold in range(FOLDS)])
    assert (targets.sum(0) >= FOLDS).all()
    spread = counts.max(0).values - counts.min(0).values
    assert spread[4] <= 1  # the rarest one
    drawn = torch.randint(FOLDS, (400,), generator=seeded(2))
    chance = torch.stack([targets[drawn == fold].sum(0) for fold in range(FOLDS)])
    assert (spread < chance.max(0).values - chance.min(0).values).all()


def test_equal_label_sets_are_one_stratum():
    targets = torch.tensor([[1, 0], [0, 1], [1, 0], [1, 1], [0, 0]])
    strata = strata_of_label_sets(targets)
    assert strata[0] == strata[2]
    assert len(strata.unique()) == 4


def test_numbers_are_in_ranges_of_as_many_examples():
    targets = torch.tensor(load_diabetes().target)
    strata = strata_of_numbers(targets)
    counts = torch.bincount(strata)
    assert len(counts) == BINS and counts.max() - counts.min() <= 1
    for low, high in zip(range(BINS - 1), range(1, BINS), strict=True):
        assert targets[strata == low].max() <= targets[strata == high].min()
    assert torch.equal(strata, strata_of_numbers(targets[:, None]))


def test_other_targets_are_one_stratum():
    labels = torch.tensor([2, 0, 1])
    assert torch.equal(strata_of_labels(labels), labels)
    assert not strata_of_labels(torch.rand(3, 4, 6)).any()

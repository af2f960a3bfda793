"""Cross-fitting: folds, and gains that hold on examples never seen."""

import pytest
import torch

from metricopt.on_outputs.folds import stratified_folds


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("classes", [2, 7])
def test_folds_are_alike_in_size_and_labels(classes):
    targets = torch.randint(classes, (203,), generator=seeded())
    folds = stratified_folds(targets, 5, seeded(1))
    sizes = torch.bincount(folds, minlength=5)
    assert len(folds) == 203 and sizes.max() - sizes.min() <= 1
    for label in range(classes):
        counts = torch.bincount(folds[targets == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_folds_are_drawn():
    targets = torch.zeros(50, dtype=torch.long)
    one, same, other = (stratified_folds(targets, 5, seeded(s)) for s in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)

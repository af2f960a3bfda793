"""Verification accuracy by hand, and against scikit-learn's curve and a plain loop."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_curve

from metricopt.errors import DataError, MetricError
from metricopt.metrics.verification import (
    Verification,
    best_threshold,
    fold_accuracy,
)


def directions(*degrees):
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], 1)


def test_the_threshold_is_in_the_middle_of_the_best_gap():
    similarities = torch.tensor([0.9, 0.7, 0.5, 0.1])
    same = torch.tensor([True, True, False, False])
    assert best_threshold(similarities, same) == pytest.approx(0.6)
    # One of three is called wrong either way: the highest of equal thresholds.
    same = torch.tensor([True, False, True, False])
    assert best_threshold(similarities, same) == pytest.approx(0.8)


def test_equal_similarities_are_not_told_apart():
    same = torch.tensor([True, False, True, False])
    assert abs(best_threshold(torch.ones(4), same)) == math.inf
    similarities = torch.tensor([0.5, 0.5, 0.9, 0.2])
    assert best_threshold(similarities, same) == pytest.approx(0.7)


def test_two_folds_by_hand():
    """Fold 0 wants a threshold of 0.5, fold 1 one of 0.2.

    In fold 0 a threshold of 0.2 calls 0.4 the same, which is wrong: (1 + 1/2) / 2. In
    fold 1 one of 0.5 calls 0.3 different, which is wrong: (1/2 + 1) / 2.
    """
    similarities = torch.tensor([0.9, 0.6, 0.4, 0.1, 0.7, 0.3, 0.1, 0.0])
    same = torch.tensor([True, True, False, False] * 2)
    folds = torch.tensor([0] * 4 + [1] * 4)
    assert fold_accuracy(similarities, same, folds) == pytest.approx(0.75)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    shuffled = (each[order] for each in (similarities, same, folds))
    assert fold_accuracy(*shuffled) == pytest.approx(0.75)


def test_four_classes_by_hand():
    """Classes 0 and 2 are fold 0, classes 1 and 3 fold 1.

    Fold 0: 10 degrees within classes, 80 to 100 between. Fold 1: 10 degrees within
    class 1, 90 within class 3, 35 to 135 between: its best threshold, 10 to 35 degrees,
    is right in all of fold 0. That of fold 0, 10 to 80, calls the pair of 90 different
    and those of 35 and 45 the same: (1/2 + 2/4) / 2.
    """
    embeddings = directions(0, 10, 90, 100, 0, 10, 45, 135)
    targets = torch.tensor([0, 0, 2, 2, 1, 1, 3, 3])
    value = Verification().value(embeddings, targets)
    assert value == pytest.approx((1 + 0.5) / 2)


def looped(embeddings, targets):
    """The protocol with numpy and scikit-learn, pair by pair."""
    classes = sorted(set(targets.tolist()))
    count = min(10, len(classes) // 2)
    unit = torch.nn.functional.normalize(embeddings.double()).numpy()
    pairs = []
    for i, j in combinations(range(len(targets)), 2):
        ranks = [classes.index(int(targets[k])) for k in (i, j)]
        if ranks[0] % count == ranks[1] % count:
            pairs.append((ranks[0] % count, ranks[0] == ranks[1], unit[i] @ unit[j]))
    folds, same, scores = map(np.array, zip(*pairs, strict=True))
    found = []
    for fold in range(count):
        own = folds == fold
        wrong, right, cuts = roc_curve(
            same[~own], scores[~own], drop_intermediate=False
        )
        best = int(np.argmax(right - wrong))
        after = scores[~own][scores[~own] < cuts[best]].max(initial=-np.inf)
        called = scores[own] > (cuts[best] + after) / 2
        kinds = [np.mean(called[same[own]]), np.mean(~called[~same[own]])]
        found.append(np.mean(kinds))
    return np.mean(found)


@pytest.mark.parametrize("classes", [4, 9, 25])
def test_it_is_what_scikit_learn_finds(classes):
    generator = torch.Generator().manual_seed(classes)
    targets = torch.randint(classes, (6 * classes,), generator=generator)
    targets = torch.cat([targets, torch.arange(classes).repeat(2)])
    centres = torch.randn(classes, 6, generator=generator)
    noise = torch.randn(len(targets), 6, generator=generator)
    embeddings = centres[targets] + 1.2 * noise
    value = Verification().value(embeddings, targets)
    assert value == pytest.approx(looped(embeddings, targets))
    assert 0.6 < value < 0.99


def test_embeddings_that_are_all_the_same_are_chance():
    targets = torch.arange(6).repeat(3)
    assert Verification().value(torch.ones(18, 4), targets) == 0.5


def test_too_few_classes_or_folds_are_refused():
    with pytest.raises(DataError, match="needs 4 classes or more, two for every fold"):
        Verification().value(torch.randn(6, 2), torch.arange(3).repeat(2))
    with pytest.raises(DataError, match="two examples or more of every class"):
        Verification().value(torch.randn(5, 2), torch.arange(5))
    pairs = torch.rand(4), torch.tensor([True, False, True, False])
    with pytest.raises(DataError, match="two folds or more, got 1"):
        fold_accuracy(*pairs, torch.zeros(4))
    with pytest.raises(DataError, match="one kind in fold 1"):
        fold_accuracy(*pairs, torch.tensor([0, 0, 1, 0]))
    with pytest.raises(MetricError, match="got length 0 for example 2"):
        embeddings = torch.ones(8, 2).index_fill(0, torch.tensor(2), 0.0)
        Verification().value(embeddings, torch.arange(4).repeat(2))

"""Pairs to observe, and verification of listed pairs by hand."""

import pytest
import torch

from benchmarks.problems.retrieval.pair_metrics import PairVerification
from benchmarks.problems.retrieval.pairs import EACH, FOLDS, drawn_pairs
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError, DataError


def test_drawn_pairs_are_of_both_kinds_in_folds_that_share_no_class():
    classes = torch.arange(9).repeat(4)
    pairs = drawn_pairs(classes, torch.Generator().manual_seed(0))
    of = classes[pairs].view(FOLDS, 2, EACH, 2)
    assert (of[:, 0, :, 0] == of[:, 0, :, 1]).all()
    assert (of[:, 1, :, 0] != of[:, 1, :, 1]).all()
    folds = [set(fold.flatten().tolist()) for fold in of]
    assert sorted(each for fold in folds for each in fold) == list(range(9))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    again = drawn_pairs(classes, torch.Generator().manual_seed(0))
    assert torch.equal(pairs, again)


def test_two_folds_of_pairs_by_hand():
    """Cosines .8 same, .2 not; .6 same, .7 not. See `fold_accuracy`.

    Fold 0 gives the threshold .5: fold 1 then calls its pair of two the same. Fold 1
    has no good one: -inf and inf are as good, and the highest calls all different.
    """
    cosines = torch.tensor([0.8, 0.2, 0.6, 0.7], dtype=torch.float64)
    second = torch.stack([cosines, (1 - cosines**2).sqrt()], 1)
    embeddings = torch.stack([torch.tensor([[1.0, 0.0]] * 4), second], 1).flatten(0, 1)
    targets = torch.tensor([0, 0, 0, 1, 2, 2, 2, 3])
    metric = metric_of(Unit("pair-verification", {"folds": 2}))
    assert metric.value(embeddings, targets) == pytest.approx((0.5 + 0.5) / 2)
    better = embeddings.clone()
    better[7] = torch.tensor([0.0, 1.0])
    assert metric.value(better, targets) == 1.0


def test_pairs_that_do_not_fill_the_folds_are_refused():
    with pytest.raises(DataError, match="3 folds of as many pairs each, got 8 examp"):
        PairVerification(3).value(torch.randn(8, 2), torch.arange(8))
    with pytest.raises(ConfigError, match="folds >= 2, got folds=1"):
        PairVerification(1)

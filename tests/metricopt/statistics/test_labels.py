"""Statistics of several labels, against scikit-learn and against single labels."""

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    hamming_loss,
    jaccard_score,
    precision_score,
    recall_score,
)

from metricopt.statistics.contract import STATISTICS
from metricopt.statistics.labels import LabelStatistics
from metricopt.statistics.probabilities import (
    LabelProbabilityStatistics,
    ProbabilityStatistics,
)
from metricopt.statistics.ranking import LabelRankingStatistics, RankingStatistics
from tests.metricopt.drawn import seeded

N, LABELS, ROWS = 60, 4, 3
KINDS = (LabelStatistics(), LabelRankingStatistics(), LabelProbabilityStatistics())
SCORES = {
    "recall": recall_score,
    "precision": precision_score,
    "F": f1_score,
    "Jaccard": jaccard_score,
}


def drawn():
    """Logits [B, N, K] with label sets that are empty, and some never predicted."""
    targets = (torch.rand(N, LABELS, generator=seeded(1)) < 0.3).long()
    outputs = torch.randn(ROWS, N, LABELS, generator=seeded()) + targets - 0.8
    outputs[1, :, 2] -= 30
    return outputs, targets


def scored(function, outputs, targets, average):
    decided = (outputs > 0).long()
    found = [
        function(targets, row, average=average, zero_division=0) for row in decided
    ]
    return doubles(found)


def doubles(values):
    return torch.from_numpy(np.array(values, dtype=np.float64))


@pytest.mark.parametrize("name", SCORES)
def test_ratios_of_labels_are_those_of_scikit_learn(name):
    outputs, targets = drawn()
    found, score = LabelStatistics().exact(outputs, targets), SCORES[name]
    each = scored(score, outputs, targets, None)
    torch.testing.assert_close(found[f"{name} of labels"], each, rtol=0, atol=1e-6)
    mean = scored(score, outputs, targets, "macro")[:, None]
    torch.testing.assert_close(found[f"mean {name} of labels"], mean, rtol=0, atol=1e-6)
    by_example = scored(score, outputs, targets, "samples")
    at = found[f"{name} of examples"][:, 0]
    torch.testing.assert_close(at, by_example, rtol=0, atol=1e-6)


def test_ratios_of_sums_and_exact_matches_are_those_of_scikit_learn():
    outputs, targets = drawn()
    found = LabelStatistics().exact(outputs, targets)
    for name in ("precision", "F", "Jaccard"):
        micro = scored(SCORES[name], outputs, targets, "micro")[:, None]
        torch.testing.assert_close(found[f"{name} of all"], micro, rtol=0, atol=1e-6)
    weighted = scored(f1_score, outputs, targets, "weighted")[:, None]
    at = found["weighted F of labels"]
    torch.testing.assert_close(at, weighted, rtol=0, atol=1e-6)
    decided = (outputs > 0).long()
    exact = doubles([accuracy_score(targets, row) for row in decided])[:, None]
    torch.testing.assert_close(found["exact matches"], exact, rtol=0, atol=1e-6)
    # Hamming loss is linear in hits and predictions: positives + predicted - 2 hits.
    hits, predicted = found["counts of all"].T
    loss = targets.double().mean() + predicted - 2 * hits
    expected = doubles([hamming_loss(targets, row) for row in decided])
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-6)


def test_empty_label_sets_are_counted():
    outputs, targets = drawn()
    found = LabelStatistics().exact(outputs, targets)["F of examples"]
    silent = (outputs < 0).all(-1)
    empty = silent & (targets == 0).all(-1)
    for place, counted in ((1, empty), (2, silent)):
        expected = counted.double().mean(1)
        torch.testing.assert_close(found[:, place], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("form", ["exact", "smooth"])
def test_weights_are_repetitions(kind, form):
    outputs, targets = drawn()
    counts = torch.randint(0, 3, (N,), generator=seeded(4))
    repeated = torch.arange(N).repeat_interleave(counts)
    one = getattr(kind, form)(outputs, targets, counts.float().expand(ROWS, -1))
    other = getattr(kind, form)(outputs[:, repeated], targets[repeated])
    for name, values in one.items():
        torch.testing.assert_close(values, other[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_smooth_is_differentiable_in_the_outputs(kind):
    outputs, targets = drawn()
    outputs.requires_grad_()
    found = kind.smooth(outputs, targets)
    sum(values.sum() for values in found.values()).backward()
    assert torch.isfinite(outputs.grad).all() and outputs.grad.abs().sum() > 0


def test_smooth_counts_tend_to_the_exact_ones():
    outputs, targets = drawn()
    sharp = LabelStatistics(temperature=1e-5)
    exact, smooth = sharp.exact(outputs, targets), sharp.smooth(outputs, targets)
    for name in exact:
        torch.testing.assert_close(smooth[name], exact[name], rtol=0, atol=1e-3)


def test_every_label_is_ranked_as_if_it_were_alone():
    outputs, targets = drawn()
    found = LabelRankingStatistics().exact(outputs, targets)
    alone = [
        RankingStatistics().exact(outputs[..., label, None], targets[:, label])
        for label in range(LABELS)
    ]
    for kind in ("recalls", "precisions"):
        each = torch.stack([groups[f"{kind} by output"] for groups in alone], 1)
        torch.testing.assert_close(found[f"{kind} by output"], each.flatten(1))
        torch.testing.assert_close(found[f"mean {kind} by output"], each.mean(1))


def test_pairs_of_example_and_label_are_examples():
    outputs, targets = drawn()
    flat, labels = outputs.flatten(1)[..., None], targets.flatten()
    ranked = RankingStatistics().exact(flat, labels)["recalls by output"]
    found = LabelRankingStatistics().exact(outputs, targets)["recalls by pair"]
    torch.testing.assert_close(found, ranked)
    for name, values in ProbabilityStatistics().exact(flat, labels).items():
        own = LabelProbabilityStatistics().exact(outputs, targets)[name]
        torch.testing.assert_close(own, values)


def test_networks_of_folds_are_ranked_within_their_folds():
    outputs, targets = drawn()
    folds = torch.arange(N) % 3
    moved = outputs + 10.0 * folds[:, None]  # networks whose scores do not compare
    kind, weights = LabelRankingStatistics(), torch.ones(ROWS, N)
    one = kind.pooled(outputs, targets, weights, folds)
    other = kind.pooled(moved, targets, weights, folds)
    for name, values in one.items():
        torch.testing.assert_close(values, other[name])


def test_pairs_of_one_network_keep_their_order_across_labels():
    outputs, targets = drawn()
    apart = outputs + 3.0 * torch.arange(LABELS)  # no label compares with another
    kind, weights = LabelRankingStatistics(), torch.ones(ROWS, N)
    exact = kind.exact(apart, targets)
    pooled = kind.pooled(apart, targets, weights, torch.zeros(N, dtype=torch.long))
    for name, values in exact.items():
        torch.testing.assert_close(pooled[name], values, check_dtype=False)
    before = kind.exact(outputs, targets)["recalls by pair"]
    assert (before - exact["recalls by pair"]).max() > 0.1


def test_only_these_kinds_read_labels():
    kinds = [STATISTICS.get(name)() for name in STATISTICS]
    read = {kind.name for kind in kinds if kind.reads == "labels"}
    assert read == {kind.name for kind in KINDS}

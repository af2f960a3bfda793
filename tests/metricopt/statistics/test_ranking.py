"""Statistics of rankings: scikit-learn's curves, weights, what leaves them alone."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_curve

from metricopt.statistics.ranking import FALSE_ALARMS, RECALLS, RankingStatistics
from tests.metricopt.drawn import seeded
from tests.metricopt.statistics.statistic_cases import N, situations

KIND = RankingStatistics()


def columns(outputs, targets):
    """Scores and labels of every class, of outputs [N, C]."""
    if outputs.shape[1] == 1:
        return [(outputs[:, 0].numpy(), (targets == 1).numpy())]
    return [
        (outputs[:, label].numpy(), (targets == label).numpy())
        for label in range(outputs.shape[1])
    ]


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_recalls_are_those_of_the_roc_curve(classes):
    outputs, targets = situations(classes)
    found = KIND.exact(outputs, targets)["recalls by output"]
    for row, scores in zip(found.view(3, classes, -1), outputs, strict=True):
        for recalls, (score, label) in zip(row, columns(scores, targets), strict=True):
            alarms, hits, _ = roc_curve(label, score, drop_intermediate=False)
            # A share of false alarms is reached at the next negative.
            least = 1 / (~label).sum()
            for level, recall in zip(FALSE_ALARMS, recalls.tolist(), strict=True):
                low = np.interp(level, alarms, hits)
                high = np.interp(level + least, alarms, hits)
                assert low - 0.02 <= recall <= high + 0.02


@pytest.mark.parametrize("classes", [1, 5])
def test_precisions_are_those_of_the_precision_recall_curve(classes):
    outputs, targets = situations(classes)
    found = KIND.exact(outputs, targets)["precisions by output"].view(3, classes, -1)
    score, label = columns(outputs[1], targets)[0]
    precisions, recalls, _ = precision_recall_curve(label, score)
    for level, precision in zip(RECALLS, found[1, 0].tolist(), strict=True):
        near = np.abs(recalls - level) < 0.03
        assert precisions[near].min() - 0.02 <= precision
        assert precision <= precisions[near].max() + 0.02


def test_average_precision_is_nearly_linear_in_the_precisions():
    outputs, targets = situations(4, rows=60)
    outputs = outputs + 0.7 * torch.randn(outputs.shape, generator=seeded(3))
    precisions = KIND.exact(outputs, targets)["mean precisions by output"]
    truth = np.array(
        [
            np.mean([average_precision_score(y, s) for s, y in columns(row, targets)])
            for row in outputs
        ]
    )
    features = np.column_stack([np.ones(60), precisions.numpy()])
    weights = np.linalg.lstsq(features[:40], truth[:40], rcond=None)[0]
    errors = np.abs(features[40:] @ weights - truth[40:])
    assert errors.mean() < 0.25 * truth.std()


def test_offsets_leave_rankings_by_output_alone():
    outputs, targets = situations(4)
    groups = KIND.exact(outputs, targets)
    for name, values in groups.items():
        same = torch.allclose(values[0], values[1], atol=1e-9)
        assert same == name.endswith("by output")


def test_a_class_without_examples_does_no_harm():
    outputs, targets = situations(4)
    targets[targets == 2] = 1
    for groups in (KIND.exact(outputs, targets), KIND.smooth(outputs, targets)):
        assert all(torch.isfinite(values).all() for values in groups.values())
    assert len(targets) == N


FOLDS = torch.arange(N) % 5


def test_pooled_outputs_of_one_network_rank_as_they_do():
    outputs, targets = situations(4)
    exact = KIND.exact(outputs, targets)
    pooled = KIND.pooled(outputs, targets, torch.ones(len(outputs), N), FOLDS)
    for name, values in exact.items():
        assert (pooled[name] - values).abs().mean() < 0.04  # of 100 positives


def test_pooled_outputs_of_several_networks_are_ranked_fold_by_fold():
    outputs, targets = situations(1)
    weights = torch.ones(len(outputs), N)
    # Each fold by a network of its own, which ranks alike, but whose scores differ.
    moved = outputs * (1.0 + FOLDS)[:, None] + 10 * FOLDS[:, None]
    before, after = (
        KIND.pooled(each, targets, weights, FOLDS) for each in (outputs, moved)
    )
    one_ranking = KIND.exact(moved, targets, weights)
    for name, values in before.items():
        assert torch.equal(after[name], values)
        assert one_ranking[name].mean() < values.mean() - 0.02

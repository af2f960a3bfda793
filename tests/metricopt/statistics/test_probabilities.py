"""Statistics of probabilities: what they count, weights, and the smooth form."""

import pytest
import torch
from sklearn.metrics import log_loss
from torch.nn.functional import one_hot

from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.probabilities import LEVELS, RANKS, ProbabilityStatistics
from tests.metricopt.statistics.statistic_cases import situations

KIND = ProbabilityStatistics()


def probabilities(outputs):
    if outputs.shape[-1] == 1:
        positive = outputs.sigmoid()
        return torch.cat([1 - positive, positive], -1)
    return outputs.softmax(-1)


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_shares_are_counted(classes):
    outputs, targets = situations(classes)
    groups = KIND.exact(outputs, targets)
    shares = probabilities(outputs.double())
    right = shares[:, torch.arange(len(targets)), targets]
    first, predicted = shares.max(-1)
    hit = predicted == targets
    for place, level in enumerate(LEVELS):
        expected = (right >= level).double().mean(1)
        torch.testing.assert_close(groups["right"][:, place], expected, **CLOSE)
        sure = (first >= level).double()
        torch.testing.assert_close(groups["confident"][:, place], sure.mean(1), **CLOSE)
        found = groups["confident and right"][:, place]
        torch.testing.assert_close(found, (sure * hit).mean(1), **CLOSE)


CLOSE = {"rtol": 0, "atol": 0.003}
"""One example in 400 may lie on a level."""


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_scores_are_those_of_scikit_learn(classes):
    outputs, targets = situations(classes)
    groups, labels = KIND.exact(outputs, targets), range(max(2, classes))
    for row, shares in enumerate(probabilities(outputs.double())):
        logarithm = -groups["mean logarithm"][row].item()
        assert logarithm == pytest.approx(log_loss(targets, shares, labels=labels))
        squared = (shares - one_hot(targets, max(2, classes))).square().sum(1).mean()
        found = groups["squared error"][row].item()
        assert found == pytest.approx(squared.item(), rel=1e-5)


@pytest.mark.parametrize(
    "name, dtype", [("mean logarithm", "f4"), ("mean logarithm of doubles", "f8")]
)
def test_probabilities_of_nearly_nothing_count_as_in_scikit_learn(name, dtype):
    outputs, targets = situations(3)
    shares = probabilities(40 * outputs.double())[0].numpy().astype(dtype)
    found = -KIND.exact(40 * outputs, targets)[name][0].item()
    assert found == pytest.approx(log_loss(targets, shares, labels=range(3)), rel=1e-5)


def test_only_bounded_metrics_are_explained_by_scores():
    groups = KIND.exact(*situations(2))
    (family,) = KIND.families(groups)
    assert set(groups) - set(family.groups) == set(KIND.scores)
    several = SeveralStatistics((KIND, ConfusionStatistics()))
    together = several.families(several.exact(*situations(2)))
    named = {name for each in together for name in each.groups}
    assert not named & set(several.scores) and len(several.scores) == len(KIND.scores)


def test_ranks_are_counted():
    outputs, targets = situations(7)
    found = KIND.exact(outputs, targets)["ranks"]
    order = outputs.argsort(-1, descending=True)
    place = (order == targets[None, :, None]).int().argmax(-1)
    expected = torch.stack([(place <= rank).double().mean(1) for rank in range(RANKS)])
    torch.testing.assert_close(found, expected.T, rtol=0, atol=1e-6)

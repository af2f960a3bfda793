"""Statistics of probabilities: what they count, weights, and the smooth form."""

import pytest
import torch

from metricopt.statistics.probabilities import LEVELS, RANKS, ProbabilityStatistics
from tests.metricopt.statistics.statistic_cases import seeded, situations

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
        torch.testing.assert_close(
            groups["confident and right"][:, place], (sure * hit).mean(1), **CLOSE
        )


CLOSE = {"rtol": 0, "atol": 0.003}
"""One example in 400 may lie on a level."""


def test_ranks_are_counted():
    outputs, targets = situations(7)
    found = KIND.exact(outputs, targets)["ranks"]
    order = outputs.argsort(-1, descending=True)
    place = (order == targets[None, :, None]).int().argmax(-1)
    expected = torch.stack([(place <= rank).double().mean(1) for rank in range(RANKS)])
    torch.testing.assert_close(found, expected.T, rtol=0, atol=1e-6)


@pytest.mark.parametrize("classes", [1, 5])
@pytest.mark.parametrize("form", ["exact", "smooth"])
def test_weights_are_repetitions(classes, form):
    outputs, targets = situations(classes, examples=60)
    counts = torch.randint(0, 3, (60,), generator=seeded(4))
    repeated = torch.arange(60).repeat_interleave(counts)
    one = getattr(KIND, form)(outputs, targets, counts.float().expand(3, -1))
    other = getattr(KIND, form)(outputs[:, repeated], targets[repeated])
    for name, values in one.items():
        torch.testing.assert_close(values, other[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("classes", [1, 5])
def test_smooth_is_near_exact_and_differentiable(classes):
    outputs, targets = situations(classes)
    outputs.requires_grad_()
    smooth, exact = KIND.smooth(outputs, targets), KIND.exact(outputs, targets)
    for name, values in smooth.items():
        assert (values - exact[name]).abs().max() < 0.12, name
    sum(values.sum() for values in smooth.values()).backward()
    assert torch.isfinite(outputs.grad).all()

"""The prior correction against Bayes' rule."""

import pytest
import torch

from baselines.post_hoc.prior_correction import correct_prior, uniform_shares
from metricopt.errors import DataError, ShapeError
from metricopt.metrics.confusion import class_shares


@pytest.mark.parametrize("classes", [2, 5])
def test_posteriors_follow_bayes_rule(classes):
    """Densities times shares, normalised: with other shares, another posterior."""
    generator = torch.Generator().manual_seed(classes)
    densities = torch.rand(40, classes, generator=generator, dtype=torch.float64)
    training, deployment = (
        torch.rand(classes, generator=generator, dtype=torch.float64) + 0.1
        for _ in range(2)
    )
    training, deployment = training / training.sum(), deployment / deployment.sum()
    found = correct_prior(training, deployment).shift((densities * training).log())
    expected = densities * deployment
    expected = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(found.softmax(1), expected)


def test_one_logit_is_corrected_like_two():
    two = torch.randn(30, 2, dtype=torch.float64)
    found = correct_prior(
        uniform_shares(2), class_shares(torch.tensor([0, 0, 0, 1]), 2)
    )
    one = found.shift(two[:, 1:] - two[:, :1])
    shifted = found.shift(two)
    torch.testing.assert_close(one, shifted[:, 1:] - shifted[:, :1])
    assert not found.is_trivial


def test_equal_shares_change_nothing():
    shares = class_shares(torch.tensor([0, 1, 2, 2]), 3)
    assert shares.tolist() == [0.25, 0.25, 0.5]
    found, outputs = correct_prior(shares, shares), torch.randn(4, 3)
    assert found.is_trivial
    assert torch.equal(found.shift(outputs), outputs)


def test_bad_arguments_are_named():
    with pytest.raises(ShapeError, match="got 2 and 3"):
        correct_prior(uniform_shares(2), uniform_shares(3))
    with pytest.raises(DataError, match=r"deployment shares above 0, got \[1.0, 0.0\]"):
        correct_prior(uniform_shares(2), class_shares(torch.tensor([0, 0]), 2))
    for outputs in (torch.zeros(4, 2), torch.zeros(4, 1)):
        with pytest.raises(ShapeError, match="shares of 3 classes need as many"):
            correct_prior(uniform_shares(3), uniform_shares(3)).shift(outputs)

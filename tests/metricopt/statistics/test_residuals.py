"""Statistics of predicted values, against scikit-learn on real data."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn import metrics
from sklearn.datasets import load_diabetes

from metricopt.statistics.confusion import ConfusionStatistics, RoundedStatistics
from metricopt.statistics.residuals import LEVELS, ResidualStatistics
from tests.metricopt.drawn import seeded

ROWS = 3
TARGETS = torch.tensor(load_diabetes().target)[:200]
CLOSE = {"rtol": 1e-6, "atol": 1e-9}


def drawn(outputs=1):
    """Values [B, N, T] near the targets [N, T], all of them positive."""
    targets = torch.stack([TARGETS, TARGETS.flip(0)], 1)[:, :outputs]
    noise = torch.randn(ROWS, 200, outputs, generator=seeded(), dtype=torch.float64)
    return (targets + 30 * noise).clamp_min(5), targets


def kind_of(targets):
    return ResidualStatistics().fitted(targets)


def scored(function, outputs, targets):
    return torch.tensor([function(targets, row) for row in outputs]).double()


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    ("function", "group", "power"),
    [
        (metrics.mean_absolute_error, "sizes", 1),
        (metrics.mean_squared_error, "squares", 2),
        (metrics.root_mean_squared_error, "root of squares", 1),
        (metrics.mean_absolute_percentage_error, "relative sizes", 0),
        (metrics.mean_squared_log_error, "logs", 0),
        (metrics.median_absolute_error, "median", 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_means_of_residuals_are_those_of_scikit_learn(function, group, power, outputs):
    values, targets = drawn(outputs)
    if function is metrics.root_mean_squared_error and outputs > 1:
        function = lambda y, row: metrics.mean_squared_error(y, row) ** 0.5  # noqa: E731
    kind = kind_of(targets)
    found = kind.exact(values, targets)[group][:, 0] * kind.spread**power
    torch.testing.assert_close(found, scored(function, values, targets), **CLOSE)


def test_pinball_losses_are_linear_in_the_parts():
    values, targets = drawn()
    kind = kind_of(targets)
    above, below = (kind.exact(values, targets)["parts"] * kind.spread).T
    for alpha in (0.1, 0.9):
        loss = partial(metrics.mean_pinball_loss, alpha=alpha)
        expected = scored(loss, values, targets)
        torch.testing.assert_close(
            (1 - alpha) * above + alpha * below, expected, **CLOSE
        )


def test_what_is_explained_is_that_of_scikit_learn():
    values, targets = drawn()
    found = kind_of(targets).exact(values, targets)
    for group, function in (
        ("unexplained", metrics.r2_score),
        ("unexplained variance", metrics.explained_variance_score),
    ):
        expected = scored(function, values, targets)
        torch.testing.assert_close(1 - found[group][:, 0], expected, **CLOSE)
    correlations = [np.corrcoef(row[:, 0], targets[:, 0])[0, 1] for row in values]
    expected = torch.from_numpy(np.array(correlations))
    torch.testing.assert_close(found["correlation"][:, 0], expected, **CLOSE)


@pytest.mark.parametrize("power", [1, 2], ids=["Poisson", "gamma"])
def test_deviances_are_sums_of_their_terms(power):
    values, targets = drawn()
    kind = kind_of(targets)
    terms = kind.exact(values, targets)["deviances"]
    deviance = partial(metrics.mean_tweedie_deviance, power=power)
    expected = scored(deviance, values, targets)
    if power == 1:
        found = 2 * (terms[:, 0] * kind.spread - terms[:, 1])
    else:
        found = 2 * (terms[:, 2] + terms[:, 3])
    torch.testing.assert_close(found, expected, **CLOSE)


def test_shares_below_levels_are_counted():
    values, targets = drawn()
    kind = kind_of(targets)
    found = kind.exact(values, targets)["shares"]
    for place, level in enumerate((*(-level for level in LEVELS), 0.0, *LEVELS)):
        below = (values - targets)[..., 0] <= level * kind.spread
        torch.testing.assert_close(found[:, place], below.double().mean(1), **CLOSE)


@pytest.mark.parametrize("form", ["exact", "smooth"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_weights_are_repetitions(form, outputs):
    values, targets = drawn(outputs)
    counts = torch.randint(0, 3, (200,), generator=seeded(4))
    repeated = torch.arange(200).repeat_interleave(counts)
    find = getattr(kind_of(targets), form)
    one = find(values, targets, counts.double().expand(ROWS, -1))
    other = find(values[:, repeated], targets[repeated])
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-6)


def test_smooth_is_exact_but_for_shares_and_differentiable():
    values, targets = drawn()
    values.requires_grad_()
    kind = kind_of(targets)
    exact, smooth = kind.exact(values, targets), kind.smooth(values, targets)
    for name, found in smooth.items():
        near = 0.1 if name in ("shares", "within") else 1e-9
        assert (found - exact[name]).abs().max() < near, name
    sum(found.sum() for found in smooth.values()).backward()
    assert torch.isfinite(values.grad).all() and values.grad.abs().sum() > 0


def test_one_column_of_targets_may_be_flat():
    values, targets = drawn()
    one, other = (kind_of(y).exact(values, y) for y in (targets, targets[:, 0]))
    assert all(torch.equal(one[name], other[name]) for name in one)


def graded():
    """Values near grades 2 to 5, some beyond them."""
    targets = torch.randint(2, 6, (80,), generator=seeded(1)).double()
    noise = torch.randn(ROWS, 80, 1, generator=seeded(2), dtype=torch.float64)
    return targets[:, None] + noise, targets


def test_rounded_values_are_decisions():
    values, targets = graded()
    kind = RoundedStatistics().fitted(targets)
    assert (kind.low, kind.grades) == (2, 4)
    found = kind.exact(values, targets)
    grades = values[..., 0].round().clamp(2, 5).long() - 2
    logits = torch.nn.functional.one_hot(grades, 4).float()
    expected = ConfusionStatistics().exact(logits, targets.long() - 2)
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name])


def test_smooth_rounding_is_near_and_differentiable():
    values, targets = graded()
    values.requires_grad_()
    kind = RoundedStatistics().fitted(targets)
    smooth, exact = (kind.smooth(values, targets), kind.exact(values, targets))
    assert (smooth["rates"] - exact["rates"]).abs().max() < 0.1
    smooth["rates"].square().sum().backward()
    assert torch.isfinite(values.grad).all() and values.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("targets", "suits"),
    [
        ([1.0, 2.0, 3.0], True),
        ([1.0, 2.5, 3.0], False),
        ([2.0, 2.0, 2.0], False),
        ([0.0, 1.0, 40.0], False),
    ],
)
def test_only_a_few_whole_numbers_are_grades(targets, suits):
    values, targets = torch.zeros(1, 3, 1), torch.tensor(targets)
    assert RoundedStatistics().suits(values, targets) == suits
    assert not RoundedStatistics().suits(values.expand(1, 3, 2), targets)

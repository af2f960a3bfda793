"""Fairlearn's thresholds: its own decisions, with rates that groups share."""

import numpy as np
import pytest
import torch
from fairlearn.metrics import equalized_odds_difference
from fairlearn.postprocessing import ThresholdOptimizer

from baselines.post_hoc.fairlearn_thresholds import equalize_odds
from metricopt.errors import DataError, ShapeError
from metricopt.methods.evolution import draw_seeds
from tests.baselines.post_hoc.fitted import biased_model, high_digits


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_decisions_are_those_of_the_optimizer_itself():
    model, x, y, column = biased_model()
    theirs = ThresholdOptimizer(
        estimator=model,
        constraints="equalized_odds",
        prefit=True,
        predict_method="predict_proba",
    ).fit(x, y, sensitive_features=column)
    (seed,) = draw_seeds(1, generator())
    expected = theirs.predict(x, sensitive_features=column, random_state=seed)
    outputs, targets, groups = high_digits()
    found = equalize_odds(outputs, groups, targets, generator=generator())
    decided = found.decide(outputs, groups)
    assert decided.shape == outputs.shape and decided.dtype == outputs.dtype
    assert np.array_equal(decided[:, 0].numpy(), 2.0 * expected - 1)


def test_groups_get_the_same_rates_where_they_had_others():
    outputs, targets, groups = high_digits()
    found = equalize_odds(outputs, groups, targets, generator=generator())
    decided = found.decide(outputs, groups)

    def gap(scores):
        decisions = scores[:, 0].numpy() > 0
        return equalized_odds_difference(
            targets.numpy(), decisions, sensitive_features=groups.numpy()
        )

    assert gap(outputs) > 0.2
    assert gap(decided) < 0.1


def test_chance_is_the_same_at_every_call_and_another_with_another_seed():
    outputs, targets, groups = high_digits()
    found = equalize_odds(outputs, groups, targets, generator=generator())
    decided = found.decide(outputs, groups)
    assert torch.equal(decided, found.decide(outputs, groups))
    again = equalize_odds(outputs, groups, targets, generator=generator())
    assert torch.equal(decided, again.decide(outputs, groups))
    other = equalize_odds(outputs, groups, targets, generator=generator(1))
    assert 0 < (decided != other.decide(outputs, groups)).double().mean() < 0.5
    one = found.decide(outputs[:1], groups[:1])
    assert torch.equal(one, decided[:1])


def test_bad_arguments_are_named():
    outputs, targets, groups = high_digits()

    def fit(outputs=outputs, groups=groups, targets=targets):
        return equalize_odds(outputs, groups, targets, generator=generator())

    with pytest.raises(ShapeError, match=r"optimizer needs one logit, outputs \[N, 1"):
        fit(outputs=outputs.expand(-1, 2))
    with pytest.raises(DataError, match="needs targets of both classes 0 and 1"):
        fit(targets=torch.ones_like(targets))
    with pytest.raises(ShapeError, match="number of a group for each of the 1797 "):
        fit(groups=groups[:9])
    with pytest.raises(ShapeError, match=r"got torch.float64 of shape \[1797\]"):
        fit(groups=groups.double())
    with pytest.raises(DataError, match=r"both classes in every .* class 0 in group 0"):
        fit(groups=torch.where(targets == 1, 7, groups))
    with pytest.raises(DataError, match=r"of observe, \[0, 1, 2\], got also \[5\]"):
        fit().decide(outputs, torch.where(groups == 1, 5, groups))

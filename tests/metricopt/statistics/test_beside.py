"""Statistics of groups and of weighted examples, which columns make of any kind."""

import numpy as np
import pytest
import torch
from sklearn.metrics import recall_score

from metricopt.metrics.confusion import predict_labels
from metricopt.on_outputs.folds import stratified_folds
from metricopt.statistics.beside import ByGroup, Weighted, with_columns
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.probabilities import ProbabilityStatistics
from metricopt.statistics.ranking import RankingStatistics
from metricopt.statistics.residuals import ResidualStatistics
from metricopt.statistics.retrieval import RetrievalStatistics
from tests.metricopt.drawn import seeded
from tests.metricopt.statistics.statistic_cases import N, situations

GROUPS = np.array(["a", "b", "c"])[
    torch.randint(3, (N,), generator=seeded(3)).clamp(max=2)
]
AMOUNTS = torch.rand(N, generator=seeded(4)) * 50
KINDS = [ConfusionStatistics(), RankingStatistics(), ProbabilityStatistics()]


def by_group(kind=KINDS[0]):
    *_, found = with_columns([kind], {"group": GROUPS})
    return found


def weighted(column, kind=KINDS[0]):
    (found,) = with_columns([kind], {"amount": column})
    return found


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_every_group_has_the_rates_that_it_has_alone(classes):
    outputs, targets = situations(classes)
    groups = by_group().exact(outputs, targets)
    labels = predict_labels(outputs)
    hits = (labels == targets).double()
    accuracy = torch.stack([hits[:, each == GROUPS].mean(1) for each in "abc"], 1)
    gaps = accuracy.amax(1) - accuracy.amin(1)
    assert torch.allclose(groups["accuracy"], accuracy)
    assert torch.allclose(groups["gaps of accuracy"][:, 0], gaps)
    worst, best = groups["extremes of accuracy"].T
    assert torch.allclose(worst, accuracy.amin(1))
    assert torch.allclose(best, accuracy.amax(1))
    share = accuracy.amin(1) / accuracy.amax(1)
    assert torch.allclose(groups["ratios of accuracy"][:, 0], share)


def test_the_greatest_gap_of_two_rates_is_the_equalized_odds_difference():
    outputs, targets = situations(2)
    groups = by_group().exact(outputs, targets)
    decided = predict_labels(outputs) == 1
    for row, odds in enumerate(groups["sorted gaps of rates"][:, -1].tolist()):
        gaps = []
        for label in (0, 1):
            own = [(each == GROUPS) & (targets == label).numpy() for each in "abc"]
            rates = [decided[row].numpy()[part].mean() for part in own]
            gaps.append(max(rates) - min(rates))
        assert odds == pytest.approx(max(gaps))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_examples_without_weight_are_as_if_they_were_not_there(kind):
    outputs, targets = situations(2)
    kept = torch.arange(0, N, 2)
    weights = torch.zeros(len(outputs), N)
    weights[:, kept] = 1
    for found in (by_group(kind), weighted(AMOUNTS, kind)):
        left = found.exact(outputs, targets, weights)
        alone = found.at(kept).exact(outputs[:, kept], targets[kept])
        assert left.keys() == alone.keys()
        for name in left:
            assert torch.allclose(left[name], alone[name], atol=1e-5), name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_smooth_statistics_have_gradients_and_the_same_groups(kind):
    outputs, targets = situations(2)
    for found in (by_group(kind), weighted(AMOUNTS, kind)):
        exact = found.exact(outputs, targets)
        moved = outputs.clone().requires_grad_()
        smooth = found.smooth(moved, targets)
        assert exact.keys() == smooth.keys()
        (slope,) = torch.autograd.grad(smooth[found.near].sum(), moved)
        assert slope.isfinite().all()
        assert slope.any()


def test_amounts_weigh_as_sample_weight_of_scikit_learn_does():
    outputs, targets = situations(2, rows=1)
    groups = weighted(AMOUNTS).exact(outputs, targets)
    labels = predict_labels(outputs)[0]
    recall = recall_score(targets, labels, sample_weight=AMOUNTS)
    assert groups["rates by 'amount'"][0, 1].item() == pytest.approx(recall)
    plain = recall_score(targets, labels)
    assert groups["rates"][0, 1].item() == pytest.approx(plain)
    both = torch.cat([groups["rates"], groups["rates by 'amount'"]], 1)
    assert torch.equal(groups["plain and weighted"], both)


def test_what_is_lost_weighs_by_itself():
    outputs, targets = situations(2, rows=6)
    amounts = AMOUNTS - 20
    groups = weighted(amounts).exact(outputs, targets)
    profit = ((predict_labels(outputs) == 1) * amounts).mean(1)
    known = [groups[f"rates by 'amount'{end}"] for end in ("", " below 0")]
    design = torch.cat([*known, torch.ones(6, 1)], 1).double()
    parts = [amounts.clamp_min(0).double(), amounts.clamp_max(0).double()]
    truth = torch.stack([targets == 0, targets == 1]).double()
    slopes = torch.cat([truth @ part / N for part in parts])
    assert torch.allclose(design[:, :4] @ slopes, profit.double(), atol=1e-5)


def test_a_group_that_a_draw_lacks_counts_as_zeros():
    outputs, targets = situations(2)
    drawn = torch.from_numpy((GROUPS != "c").nonzero()[0])
    groups = by_group().at(drawn).smooth(outputs[:, drawn], targets[drawn])
    rates = groups["rates"].unflatten(1, (2, 3))
    assert (rates[..., 2] == 0).all()
    assert (rates[..., :2] > 0).all()


def test_parts_are_alike_in_groups_of_every_label():
    _, targets = situations(2)
    rare = np.where(torch.arange(N) % 40 == 0, "rare", "common")
    kind = SeveralStatistics(with_columns(KINDS[:1], {"kind": rare, "group": GROUPS}))
    folds = stratified_folds(kind.strata(targets), 5, seeded(0))
    for place in folds.unique():
        assert 1 <= (rare[folds == place] == "rare").sum() <= 3
        for each in "abc":
            for label in (0, 1):
                own = torch.from_numpy(each == GROUPS) & (targets == label)
                expected = own.sum() / 5
                assert abs((own & (folds == place)).sum() - expected) <= 2


CODES = torch.arange(N) % 4
MADE = {
    "names": (GROUPS, ["decisions", "decisions by 'given'"]),
    "codes": (CODES, ["decisions", "decisions by 'given'"]),
    "flags": (CODES > 2, ["decisions", "decisions by 'given'"]),
    "amounts": (AMOUNTS, ["decisions"]),
    "whole amounts": (torch.arange(N), ["decisions"]),
    "few numbers": (CODES * 0.5, ["decisions", "decisions by 'given'"]),
    "one value": (torch.ones(N), ["decisions"]),
    "too many names": (np.array([f"user {at % 30}" for at in range(N)]), ["decisions"]),
    "missing": (torch.full((N,), torch.nan), ["decisions"]),
    "pairs": (torch.ones(N, 2), ["decisions"]),
}
WEIGH = ("amounts", "whole amounts", "few numbers")


@pytest.mark.parametrize("what", MADE)
def test_what_is_made_of_a_column(what):
    column, names = MADE[what]
    kinds = with_columns(KINDS[:1], {"given": column})
    assert [kind.name for kind in kinds] == names
    assert isinstance(kinds[0], Weighted if what in WEIGH else ConfusionStatistics)
    assert all(isinstance(kind, ByGroup) for kind in kinds[1:])


def test_a_column_called_sample_weight_names_no_groups():
    (kind,) = with_columns(KINDS[:1], {"sample_weight": 0.5 + CODES})
    assert isinstance(kind, Weighted)


def test_without_columns_kinds_are_as_they_were():
    assert with_columns(KINDS, {}) == tuple(KINDS)


def test_examples_that_are_compared_have_no_groups():
    kind = RetrievalStatistics()
    assert with_columns([kind], {"group": GROUPS, "amount": AMOUNTS}) == (kind,)


def test_values_have_residuals_of_every_group():
    outputs, targets = situations(1)[0], AMOUNTS / 50
    kind = ResidualStatistics().fitted(targets)
    groups = by_group(kind).exact(outputs, targets)
    own = torch.from_numpy(GROUPS == "b")
    alone = kind.exact(outputs[:, own], targets[own])
    for name, values in alone.items():
        found = groups[name].unflatten(1, (values.shape[1], 3))[..., 1]
        assert torch.allclose(found, values), name

"""Several kinds side by side: their names, families, and fewer of them."""

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.probabilities import ProbabilityStatistics
from metricopt.statistics.ranking import RankingStatistics
from metricopt.statistics.retrieval import RetrievalStatistics
from tests.metricopt.drawn import seeded
from tests.metricopt.statistics.statistic_cases import situations

KINDS = (ConfusionStatistics(), RankingStatistics(), ProbabilityStatistics())
KIND = SeveralStatistics(KINDS)


def test_the_groups_of_every_kind_are_there():
    outputs, targets = situations(4)
    groups = KIND.exact(outputs, targets)
    for each in KINDS:
        for name, values in each.exact(outputs, targets).items():
            assert torch.equal(groups[f"{each.name}: {name}"], values)
    near = [each.exact(outputs, targets)[each.near] for each in KINDS]
    assert torch.equal(groups[KIND.near], torch.cat(near, 1))


def test_a_metric_is_of_one_family_or_of_all_together():
    groups = KIND.exact(*situations(4))
    *families, together = KIND.families(groups)
    assert [f.near for f in families] == [f"{k.name}: {k.near}" for k in KINDS]
    assert sorted(together.groups) == sorted(g for f in families for g in f.groups)
    assert all(f.alone for f in families) and not together.alone


@pytest.mark.parametrize("classes", [1, 2, 4])
@pytest.mark.parametrize("smooth", [False, True])
def test_what_is_not_read_is_not_computed_and_the_rest_is_the_same(classes, smooth):
    outputs, targets = situations(classes)
    whole = KIND.groups(outputs, targets, None, smooth=smooth)
    together = {f"probabilities: confident{also}" for also in ("", " and right")}
    for name in whole.keys() - {KIND.near}:
        reading = KIND.read_in({name, KIND.near})
        found = reading.groups(outputs, targets, None, smooth=smooth)
        assert {each.split(":")[0] for each in found} == {*KIND.names(), KIND.near}
        assert all(torch.equal(values, whole[at]) for at, values in found.items())
        computed = {each for each in found if not each.startswith("rankings: ")}
        if name in together:
            computed -= together - {name}
        nearest = {"decisions: rates", "probabilities: right", KIND.near}
        assert computed - {name} == nearest - {name}


def test_a_group_can_be_left_out():
    outputs, targets = situations(4)
    whole, left_out = KIND.exact(outputs, targets), "decisions: sorted"
    fewer = KIND.without([left_out])
    found = fewer.exact(outputs, targets)
    assert whole.keys() - found.keys() == {left_out}
    assert all(left_out not in family.groups for family in fewer.families(found))
    assert left_out not in fewer.only(["decisions"]).exact(outputs, targets)


def test_fewer_kinds_know_fewer_groups():
    outputs, targets = situations(4)
    fewer = KIND.only(["rankings"])
    expected = fewer.exact(outputs, targets)
    found = fewer.of_these(KIND.exact(outputs, targets))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert len(fewer.families(found)) == 1


def test_two_kinds_that_compare_examples_are_refused():
    both = SeveralStatistics((RetrievalStatistics(), RetrievalStatistics()))
    with pytest.raises(ConfigError, match="expected one kind of statistics that comp"):
        both.views(torch.zeros(1, 4, 2), torch.tensor([0, 0, 1, 1]))


RANKING, PROBABILITIES = RankingStatistics(), ProbabilityStatistics()
CASES = [(RANKING, 1), (RANKING, 4), (PROBABILITIES, 1), (PROBABILITIES, 5)]


@pytest.mark.parametrize(("kind", "classes"), CASES)
@pytest.mark.parametrize(("form", "near"), [("exact", 1e-6), ("smooth", 1e-4)])
def test_weights_are_repetitions(kind, classes, form, near):
    outputs, targets = situations(classes, examples=60)
    counts = torch.randint(0, 3, (60,), generator=seeded(4))
    repeated = torch.arange(60).repeat_interleave(counts)
    one = getattr(kind, form)(outputs, targets, counts.float().expand(3, -1))
    other = getattr(kind, form)(outputs[:, repeated], targets[repeated])
    for name, values in one.items():
        near = near if kind is RANKING else 1e-5
        torch.testing.assert_close(values, other[name], rtol=0, atol=near)


@pytest.mark.parametrize(("kind", "classes"), CASES)
def test_smooth_is_near_exact_and_differentiable(kind, classes):
    outputs, targets = situations(classes)
    outputs.requires_grad_()
    smooth, exact = kind.smooth(outputs, targets), kind.exact(outputs, targets)
    for name, values in smooth.items():
        near = 0.25 if kind is RANKING else 0.12
        assert (values - exact[name]).abs().max() < near, name
    sum(values.sum() for values in smooth.values()).backward()
    assert torch.isfinite(outputs.grad).all() and outputs.grad.abs().sum() > 0

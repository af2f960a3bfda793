"""Statistics of rankings by query, against scikit-learn query by query."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from metricopt.on_outputs.folds import bootstrap, folds_of
from metricopt.statistics.beside import with_columns
from metricopt.statistics.contract import SeveralStatistics
from metricopt.statistics.queries import CUTS, QueryStatistics, queries_of
from metricopt.statistics.residuals import ResidualStatistics
from tests.metricopt.drawn import seeded

QUERIES, ROWS = 15, 3
SIZES = torch.randint(4, 12, (QUERIES,), generator=seeded(7))
N = int(SIZES.sum())


def drawn(most=2):
    """Scores [B, N, 1], relevances [N] and statistics of queries in a random order."""
    query = torch.arange(QUERIES).repeat_interleave(SIZES)
    query = query[torch.randperm(N, generator=seeded(2))]
    targets = torch.randint(most + 1, (N,), generator=seeded(3)).float()
    targets[query == 0] = 0  # nothing relevant
    for one in range(1, QUERIES):  # elsewhere something is not
        targets[(query == one).nonzero()[0]] = 0
    outputs = torch.randn(ROWS, N, 1, generator=seeded()) + targets[:, None]
    return outputs, targets, QueryStatistics("query", query, "values")


def by_query(function, outputs, targets, kind):
    """The mean over queries with something relevant, and something else, per row."""
    found = []
    for row in outputs[..., 0]:
        each = []
        for query in range(QUERIES):
            own = kind.query == query
            if 0 < (targets[own] > 0).sum() < own.sum():
                each.append(function(targets[own].numpy(), row[own].numpy()))
        found.append(np.mean(each))
    return torch.from_numpy(np.array(found))


def reciprocal_rank(targets, scores):
    return 1 / (1 + (targets[np.argsort(-scores)] > 0).argmax())


def test_gains_are_those_of_scikit_learn():
    outputs, targets, kind = drawn()
    found = kind.exact(outputs, targets)
    for cut in CUTS:
        for name, gains in (("", 2**targets - 1), ("linear ", targets)):
            expected = by_query(
                lambda y, s, k=cut: ndcg_score([y], [s], k=k), outputs, gains, kind
            )
            at = found[f"{name}gain at {cut}"][:, 0]
            torch.testing.assert_close(at, expected, rtol=0, atol=1e-6)
    whole = by_query(lambda y, s: ndcg_score([y], [s]), outputs, targets, kind)
    torch.testing.assert_close(found["linear gain"][:, 0], whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("area", lambda y, s: roc_auc_score(y > 0, s)),
        ("average precision", lambda y, s: average_precision_score(y > 0, s)),
        ("reciprocal rank", reciprocal_rank),
    ],
)
def test_rankings_of_what_is_relevant_are_those_of_scikit_learn(name, function):
    outputs, targets, kind = drawn(most=1)
    found = kind.exact(outputs, targets)[name][:, 0]
    expected = by_query(function, outputs, targets, kind)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_hits_are_counted_among_the_first():
    outputs, targets, kind = drawn(most=1)
    found = kind.exact(outputs, targets)
    for place, cut in enumerate(CUTS):

        def counted(y, s, cut=cut):
            return (y[np.argsort(-s)] > 0)[:cut].sum()

        for name, function in (
            ("hits", lambda y, s: counted(y, s) > 0),
            ("recalls", lambda y, s: counted(y, s) / (y > 0).sum()),
            ("precisions", lambda y, s, cut=cut: counted(y, s) / cut),
        ):
            expected = by_query(function, outputs, targets, kind)
            at = found[name][:, place]
            torch.testing.assert_close(at, expected, rtol=0, atol=1e-6)


def test_two_outputs_rank_by_their_difference():
    outputs, targets, kind = drawn(most=1)
    both = torch.cat([torch.randn(ROWS, N, 1, generator=seeded(5)), outputs], -1)
    both[..., 1] += both[..., 0]
    one, other = kind.exact(outputs, targets), kind.exact(both, targets)
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", ["exact", "smooth"])
def test_weights_leave_queries_out_and_repeat_them(form):
    outputs, targets, kind = drawn()
    counts = torch.randint(0, 3, (QUERIES,), generator=seeded(4))
    repeated = [
        (kind.query == query).nonzero().flatten()
        for query in range(QUERIES)
        for _ in range(counts[query])
    ]
    again = torch.cat(repeated)
    names = torch.arange(len(repeated)).repeat_interleave(
        torch.tensor([len(each) for each in repeated])
    )
    weights = counts[kind.query].float().expand(ROWS, -1)
    one = getattr(kind, form)(outputs, targets, weights)
    copies = QueryStatistics("query", names, "values")
    other = getattr(copies, form)(outputs[:, again], targets[again])
    for name in one:
        near = 1e-6 if form == "exact" else 0.03  # scores vary a little less or more
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=near)


def test_smooth_is_near_exact_and_differentiable():
    outputs, targets, kind = drawn()
    outputs.requires_grad_()
    exact, smooth = kind.exact(outputs, targets), kind.smooth(outputs, targets)
    for name in ("gain", "gains", "hits", "area", "average precision"):
        assert (exact[name] - smooth[name]).abs().max() < 0.3, name
    sum(values.sum() for values in smooth.values()).backward()
    assert torch.isfinite(outputs.grad).all() and outputs.grad.abs().sum() > 0


def test_queries_stay_whole_in_draws_folds_and_samples():
    _, targets, kind = drawn()
    places = kind.draw(targets, 30, seeded(1))
    chosen = kind.query[places].unique()
    assert 30 <= len(places) < 30 + SIZES.max()
    assert len(places) == SIZES[chosen].sum()
    several = SeveralStatistics((kind, ResidualStatistics()))
    split = type("Split", (SimpleNamespace,), {"__len__": lambda _: N})
    statistics = split(kind=several, targets=targets)
    folds = folds_of(statistics, 5, seeded(0))
    counts = bootstrap(statistics, 20, seeded(0))
    for query in range(QUERIES):
        own = kind.query == query
        assert len(folds[own].unique()) == 1
        assert (counts[:, own] == counts[:, own][:, :1]).all()
    assert several.sizes(targets) == {"examples": N, "queries": QUERIES}


def test_columns_name_queries_by_their_name_or_by_many_words():
    numbers = torch.arange(40) // 2
    words = np.array([f"user {number}" for number in numbers])
    columns = {"qid": numbers, "who": words, "price": numbers, "kind": words[:40] > "v"}
    assert queries_of(columns).keys() == {"qid", "who"}
    kinds = with_columns((ResidualStatistics(),), {"qid": numbers})
    assert [kind.name for kind in kinds] == ["rankings by 'qid'", "residuals"]


@pytest.mark.parametrize(
    ("outputs", "targets", "suits"),
    [(1, 1.0, True), (2, 1.0, False), (1, 0.0, False), (1, -1.0, False)],
)
def test_one_ranking_of_relevances_is_needed(outputs, targets, suits):
    values, given = torch.zeros(1, N, outputs), torch.full((N,), targets)
    assert drawn()[2].suits(values, given) == suits

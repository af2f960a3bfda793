"""Statistics of retrieval: naive loops, galleries, smooth estimates and their draws."""

import pytest
import torch
from torch.nn.functional import normalize

from metricopt.statistics.contract import SeveralStatistics, anchored
from metricopt.statistics.retrieval import MOST, RANKS, RetrievalStatistics
from tests.metricopt.drawn import seeded

CLASSES, EACH, SIZE = 12, 6, 5
KIND = RetrievalStatistics(gallery=CLASSES * EACH)


def embedded(rows=2, classes=CLASSES, each=EACH, noise=0.6):
    """Embeddings [rows, N, E] around a centre for every class, shuffled."""
    targets = torch.arange(classes).repeat_interleave(each) + 3
    targets = targets[torch.randperm(len(targets), generator=seeded(4))]
    centres = torch.randn(rows, classes + 3, SIZE, generator=seeded(5))
    spread = noise * torch.randn(rows, len(targets), SIZE, generator=seeded(6))
    return normalize(centres[:, targets] + spread, dim=-1), targets


def naive(embeddings, targets):
    """Of every query: how many of other classes beat each one of its own."""
    near = embeddings.double() @ embeddings.double().T
    found = []
    for query, similar in enumerate(near.tolist()):
        alike = (targets == targets[query]).tolist()
        pairs = list(enumerate(zip(similar, alike, strict=True)))
        own = [s for place, (s, same) in pairs if same and place != query]
        others = [s for _, (s, same) in pairs if not same]
        found.append([sum(other >= s for other in others) for s in own])
    return found


@pytest.mark.parametrize(("classes", "each"), [(CLASSES, EACH), (4, 2), (5, 40)])
def test_statistics_are_those_of_naive_loops(classes, each):
    outputs, targets = embedded(classes=classes, each=each)
    outputs = outputs.double()  # fewer similarities are tied
    groups = RetrievalStatistics(len(targets)).exact(outputs, targets)
    levels = [rank for rank in RANKS if rank < len(targets)]
    assert levels[0] == 1  # the first number is Recall@1
    for row, embeddings in enumerate(outputs):
        counts = [sorted(found)[:MOST] for found in naive(embeddings, targets)]
        nearest = [sum(c[0] < r for c in counts) / len(counts) for r in levels]
        below = [[sum(one < r for one in c) / len(c) for c in counts] for r in levels]
        shares = [sum(each) / len(counts) for each in below]
        assert groups["nearest"][row].tolist() == pytest.approx(nearest, abs=1e-5)
        every = groups["all of the class"][row].tolist()
        assert every == pytest.approx(shares, abs=1e-5)


def test_neither_the_order_nor_the_length_of_embeddings_matters():
    outputs, targets = embedded(classes=5, each=30)
    order = torch.randperm(len(targets), generator=seeded(8))
    kind = RetrievalStatistics(len(targets))
    shuffled = kind.exact(outputs[:, order], targets[order])
    longer = outputs * torch.rand(outputs.shape[:2], generator=seeded(1))[..., None]
    longer = kind.exact(longer, targets)
    for name, values in kind.exact(outputs, targets).items():
        torch.testing.assert_close(shuffled[name], values)
        torch.testing.assert_close(longer[name], values)


def test_collapsed_embeddings_find_nothing():
    _, targets = embedded()
    same = torch.ones(1, len(targets), SIZE)
    assert KIND.exact(same, targets)["nearest"][0, 0] == 0


def test_large_classes_are_drawn_in_part_beside_others():
    targets = torch.arange(20).repeat_interleave(600)
    rows = KIND.draw(targets, 500, seeded(3))
    counts = targets[rows].unique(return_counts=True)[1]
    assert counts.tolist() == [50] * 10
    assert not torch.equal(rows, KIND.draw(targets, 500, seeded(4)))
    outputs = torch.randn(1, len(rows), 4, generator=seeded(5), requires_grad=True)
    smooth = RetrievalStatistics(len(targets)).smooth(outputs, targets[rows])
    (slope,) = torch.autograd.grad(smooth["nearest"].sum(), outputs)
    assert torch.isfinite(slope).all()


def test_weights_are_of_queries_and_leave_the_gallery_whole():
    outputs, targets = embedded()
    kept = (targets % 2 == 0).float()
    views = KIND.views(outputs, targets)
    expected = views[:, kept > 0].mean(1)
    groups = KIND.exact(outputs, targets, kept.expand(2, -1))
    found = torch.cat([groups["nearest"], groups["all of the class"]], 1)
    torch.testing.assert_close(found, expected.double(), rtol=1e-5, atol=1e-6)


def test_pooled_views_are_averaged_each_by_its_own_network():
    outputs, targets = embedded()
    folds = torch.arange(len(targets)) % 2
    views = KIND.views(outputs, targets)[folds, torch.arange(len(targets))][None]
    weights = torch.rand(4, len(targets), generator=seeded(2))
    groups = KIND.pooled(views.expand(4, -1, -1), targets, weights, folds)
    expected = (weights @ views[0]) / weights.sum(1, keepdim=True)
    found = torch.cat([groups["nearest"], groups["all of the class"]], 1)
    torch.testing.assert_close(found, expected.double(), rtol=1e-4, atol=1e-5)


def test_a_query_without_a_partner_does_not_count():
    outputs, targets = embedded()
    alone = targets.clone()
    alone[0] = 99
    views = KIND.views(outputs, alone)
    groups = KIND.exact(outputs, alone)
    expected = views[:, 1:].mean(1).chunk(2, 1)[0].double()
    torch.testing.assert_close(groups["nearest"], expected, rtol=1e-5, atol=1e-6)


def test_smooth_statistics_are_near_exact_ones_and_have_gradients():
    outputs, targets = embedded(rows=3)
    moving = outputs.clone().requires_grad_()
    smooth, exact = KIND.smooth(moving, targets), KIND.exact(outputs, targets)
    for name, values in smooth.items():
        assert (values - exact[name]).abs().mean() < 0.08
    (slope,) = torch.autograd.grad(smooth["nearest"].sum(), moving)
    assert torch.isfinite(slope).all() and slope.abs().max() > 0


def test_a_step_along_the_smooth_gradient_raises_the_exact_recall():
    outputs, targets = embedded(rows=1, noise=0.9)
    moving = outputs.clone().requires_grad_()
    for _ in range(20):
        goal = KIND.smooth(moving, targets)["nearest"][:, 0].sum()
        (slope,) = torch.autograd.grad(goal, moving)
        moving = (moving + 0.05 * slope / slope.norm(dim=-1).mean()).detach()
        moving.requires_grad_()
    before = KIND.exact(outputs, targets)["nearest"][0, 0]
    after = KIND.exact(moving.detach(), targets)["nearest"][0, 0]
    assert after > before + 0.05


def test_smooth_statistics_of_some_classes_estimate_those_of_all():
    outputs, targets = embedded(rows=1, classes=60, noise=0.9)
    kind = RetrievalStatistics().fitted(targets)
    whole = kind.smooth(outputs, targets)["nearest"][0]
    parts = []
    for seed in range(20):
        rows = kind.draw(targets, 120, seeded(seed))
        assert 120 <= len(rows) < 120 + EACH
        counts = targets[rows].unique(return_counts=True)[1]
        assert set(counts.tolist()) == {EACH}
        parts.append(kind.smooth(outputs[:, rows], targets[rows])["nearest"][0])
    # A gallery without its hard images is easier at the first ranks.
    assert (torch.stack(parts).mean(0) - whole).abs().max() < 0.1


def test_anchored_smooth_statistics_are_exact_at_the_anchor():
    outputs, targets = embedded()
    exact = KIND.exact(outputs, targets)
    there = KIND.smooth(outputs, targets)
    found = anchored(KIND.smooth(outputs, targets), there, exact)
    for name, values in found.items():
        torch.testing.assert_close(values, exact[name])


def test_all_are_drawn_where_as_many_are_wanted():
    _, targets = embedded()
    assert KIND.draw(targets, 1_000, seeded()).tolist() == list(range(len(targets)))


def test_it_suits_two_classes_of_which_one_has_a_pair():
    outputs = torch.zeros(1, 3, 2)
    labels = torch.tensor([[0, 0, 1], [0, 0, 0], [0, 1, 2]])
    assert [KIND.suits(outputs, each) for each in labels] == [True, False, False]


def test_several_statistics_pass_everything_on():
    outputs, targets = embedded()
    several = SeveralStatistics((RetrievalStatistics(),)).fitted(targets)
    assert several.compares
    rows = several.draw(targets, 20, seeded())
    assert torch.equal(rows, KIND.draw(targets, 20, seeded()))
    found = several.exact(outputs, targets)["neighbours: nearest"]
    torch.testing.assert_close(found, KIND.exact(outputs, targets)["nearest"])
    assert several.views(outputs, targets).shape == KIND.views(outputs, targets).shape

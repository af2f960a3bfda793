"""The losses of embeddings that ALA adapts, against loops, and what is seen of them."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from baselines.embedding_losses.margin import Margin
from baselines.embedding_losses.triplet import Triplet
from baselines.learned_losses.adaptive_distances import (
    DistanceMixture,
    FocalWeighting,
    observed_distances,
)
from baselines.learned_losses.distance_mixture import distance_mixture, terms
from baselines.learned_losses.focal_weighting import focal_weighting

TARGETS = torch.arange(4).repeat_interleave(4)
SQUARE = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])


@pytest.fixture
def embeddings():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(len(TARGETS), 2, 5, generator=generator)


def adapted(kind, framework=Margin):
    sample = framework(4, 5).triplets
    return FocalWeighting(sample) if kind == "focal" else DistanceMixture(sample, kind)


@pytest.mark.parametrize("framework", [Margin, Triplet])
def test_the_mixture_is_the_mean_over_the_triplets_of_its_framework(
    embeddings, framework
):
    loss = adapted("powers", framework)
    phi = torch.rand(2, 10)
    found = loss.loss(embeddings, TARGETS, phi)
    for place, own in enumerate(phi):
        unit = normalize(embeddings[:, place])
        triplets = zip(*framework(4, 5).triplets(unit, TARGETS), strict=True)
        each = [
            distance_mixture(
                (unit[a] - unit[p]).norm()[None],
                (unit[a] - unit[n]).norm()[None],
                own,
                "powers",
            )
            for a, p, n in triplets
        ]
        assert len(each) > 3
        torch.testing.assert_close(found[place], torch.cat(each).mean())


def test_focal_weighting_sums_over_what_each_anchor_is_given(embeddings):
    phi = torch.tensor([[2.0, 0.5], [1.0, 3.0]])
    found = adapted("focal").loss(embeddings, TARGETS, phi)
    unit = normalize(embeddings[:, 1])
    anchors, positives, negatives = Margin(4, 5).triplets(unit, TARGETS)
    each = []
    for anchor in anchors.unique():
        own = anchors == anchor
        distances = (unit - unit[anchor]).norm(dim=1)[None]
        masks = torch.zeros(2, 1, len(unit), dtype=torch.bool)
        masks[0, 0, positives[own]] = masks[1, 0, negatives[own]] = True
        each.append(focal_weighting(distances, *masks, phi[1]))
    torch.testing.assert_close(found[1], torch.cat(each).mean())


@pytest.mark.parametrize("kind", ["shapes", "powers", "focal"])
def test_slopes_are_those_of_finite_differences(kind, embeddings):
    loss = adapted(kind)
    fixed = loss.sample(normalize(embeddings[:, 0]), TARGETS)
    loss.sample = lambda unit, targets: fixed
    phi = loss.start(1, 0.1, torch.Generator().manual_seed(0)).double()
    given = embeddings[:, :1].double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda each: loss.loss(each, TARGETS, phi), (given,), rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["shapes", "focal"])
def test_nothing_to_compare_costs_nothing(kind):
    given = torch.randn(3, 1, 5, requires_grad=True)
    loss = adapted(kind)
    phi = loss.start(1, 0.0, torch.Generator())
    found = loss.loss(given, torch.arange(3), phi)
    found.sum().backward()
    assert found.tolist() == [0]
    assert not given.grad.any()
    assert loss.loss(given * torch.nan, torch.arange(3), phi).isnan().all()


def test_observed_distances_by_hand():
    """Two classes at the corners of a square: neighbours are sqrt(2) apart."""
    positive, negative = observed_distances(3 * SQUARE, torch.tensor([0, 0, 1, 1]))
    side = math.sqrt(2)
    assert positive.tolist() == pytest.approx([side] * 4)
    assert negative.tolist() == pytest.approx([side] * 4)
    positive, negative = observed_distances(SQUARE, torch.tensor([0, 1, 0, 1]))
    assert positive.tolist() == pytest.approx([2.0] * 4)
    assert negative.tolist() == pytest.approx([side] * 4)
    twice = SQUARE.repeat(2, 1), torch.tensor([0, 1, 0, 1] * 2)
    assert observed_distances(*twice)[0].tolist() == pytest.approx([2.0] * 16)


@pytest.mark.parametrize("kind", ["shapes", "powers", "focal"])
def test_statistics_are_in_units_of_random_directions(kind):
    """So that a policy can be used on other data."""
    loss = adapted(kind)
    allowed = loss.observe(SQUARE[None], torch.tensor([0, 0, 1, 1]))
    phi = loss.start(1, 0.0, torch.Generator())
    states = loss.states(phi, 0.25)
    assert states.shape == (1, len(allowed), loss.features)
    torch.testing.assert_close(states[..., :10], torch.ones(1, len(allowed), 10))
    assert not states[..., 10].any()
    assert torch.equal(states[..., 11], phi)
    assert (states[..., 12] == 0.25).all()
    assert allowed.all()


def test_each_parameter_sees_its_own_function(embeddings):
    loss = adapted("shapes")
    loss.observe(embeddings.transpose(0, 1), TARGETS)
    positive, negative = observed_distances(embeddings[:, 1], TARGETS)
    unit = terms(torch.tensor([2**0.5]), torch.tensor([2**0.5]), "shapes")[0]
    latest = loss.states(torch.zeros(2, 10), 0.0)[1, :, 9]
    means = [
        terms(each, each, "shapes").mean(0)[part]
        for each, part in ((positive, slice(5)), (negative, slice(5, 10)))
    ]
    torch.testing.assert_close(latest, (torch.cat(means) / unit).clamp(0, 10))


def test_one_observed_class_leaves_the_weights_of_negatives_alone():
    loss = adapted("shapes")
    allowed = loss.observe(SQUARE[None], torch.zeros(4, dtype=torch.long))
    assert allowed.tolist() == [True] * 5 + [False] * 5
    assert loss.states(torch.zeros(1, 10), 0.0).isfinite().all()


@pytest.mark.parametrize(
    ("kind", "first", "bounds"),
    [("shapes", [1, 0, 0, 0, 0] * 2, (0, 1)), ("focal", [1, 1], (0.1, 10))],
)
def test_parameters_begin_with_the_default_and_keep_their_bounds(kind, first, bounds):
    loss = adapted(kind)
    phi = loss.start(2, 0.0, torch.Generator())
    assert phi.tolist() == [first, first]
    for change in (-100.0, 100.0):
        moved = loss.moved(phi, torch.full_like(phi, change))
        assert moved.unique().tolist() == pytest.approx([bounds[change > 0]])
    noisy = loss.start(2, 0.1, torch.Generator().manual_seed(0))
    assert 0 < (noisy - phi).abs().max() <= 0.1
    assert not torch.equal(noisy[0], noisy[1])

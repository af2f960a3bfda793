"""The surrogate of sentences: hand-worked cases, and how it is fitted."""

import math

import pytest
import torch

from baselines.learned_losses.reloss_surrogate import (
    Fitting,
    fit_surrogate,
    gradient_penalty,
)
from baselines.learned_losses.surrogates.contract import KINDS, Groups
from baselines.learned_losses.surrogates.sentences import (
    SentenceKind,
    SentenceSurrogate,
)
from metricopt.errors import DataError, ShapeError
from metricopt.losses.sentences import length_loss
from metricopt.metrics.sentences import CorpusBleu
from metricopt.process.seeding import make_generator
from metricopt.structured.sentences import listed, lists, unpacked
from tests.baselines.learned_losses.surrogates.group_costs import costs_by
from tests.metricopt.metrics.test_sentences import random_texts
from tests.metricopt.structured.test_sentences import (
    LENGTH,
    outputs_of,
    packed,
    said,
)


def asked(chances, references):
    """Outputs with these probabilities [N, L] of right pieces, the rest of another."""
    targets = packed(*references)
    pieces = unpacked(targets, LENGTH).pieces
    right = (pieces - 3).clamp_min(0)[..., None]
    log_p = torch.full((*chances.shape, 8), 1e-6)
    log_p = log_p.scatter(-1, (right + 1) % 8, (1 - chances)[..., None])
    log_p = log_p.scatter(-1, right, chances[..., None]).log()
    found = lists(said(*references, count=8))
    hidden = pieces > 0
    found[:, 1:][hidden] = listed(log_p[hidden], pieces[hidden], 8, 3)
    return outputs_of(found), targets


@pytest.mark.parametrize("anchored", [False, True])
def test_the_loss_is_worked_by_hand(anchored):
    """Layers that add nothing leave v = the mean of 2 log p - 3 over places."""
    surrogate = SentenceSurrogate(LENGTH, 2, 1, anchored=anchored)
    surrogate.layers = torch.nn.ModuleList()
    with torch.no_grad():
        surrogate.entry.weight.copy_(torch.tensor([[1.0], [0.0]]))
        surrogate.entry.bias.zero_()
        surrogate.places.zero_()
        surrogate.last.weight.copy_(torch.tensor([[2.0, 0.0]]))
        surrogate.last.bias.fill_(-3.0)
    chances = torch.full((2, LENGTH), 0.9)
    chances[0, :2], chances[1, 0] = torch.tensor([0.5, 0.75]), 0.25
    outputs, targets = asked(chances, ["the cat", "dog"])
    means = [(math.log(0.5) + math.log(0.75)) / 2, math.log(0.25)]
    expected = -sum(means) + (0 if anchored else 3)
    found = surrogate(outputs[None], targets[None])
    assert found.tolist() == [pytest.approx(expected, abs=1e-5)]


def test_places_and_neighbours_count_and_what_is_behind_does_not():
    torch.manual_seed(0)
    surrogate = SentenceSurrogate(LENGTH)
    chances = torch.tensor([[0.2, 0.9, 0.5, 1, 1, 1]]).log()
    here = torch.tensor([[True, True, True, False, False, False]])
    value = surrogate.values(chances, here)
    turned = surrogate.values(chances[:, [1, 0, 2, 3, 4, 5]], here)
    assert not torch.allclose(value, turned)
    behind = chances.clone()
    behind[:, 3:] = -1.0
    assert torch.equal(surrogate.values(behind, here), value)
    longer = torch.ones(1, LENGTH, dtype=torch.bool)
    both = surrogate.values(chances.expand(2, -1), torch.cat([here, longer]))
    assert torch.allclose(both[0], value[0], atol=1e-6)


def test_anchored_losses_are_least_where_all_is_right():
    torch.manual_seed(0)
    surrogate = SentenceSurrogate(LENGTH, anchored=True)
    right = said("the cat", "dog")
    assert surrogate(right[None], packed("the cat", "dog")[None]).item() == 0


def test_a_wrong_piece_has_a_slope_however_wrong_it_is():
    torch.manual_seed(0)
    fitting = Fitting(epochs=6, groups=8, group_size=10, held_out=24, anchored=True)
    found = fit_surrogate(
        SentenceKind(),
        recorded(),
        costs_by(CorpusBleu()),
        fitting,
        make_generator("fit"),
    )
    here = torch.ones(1, LENGTH, dtype=torch.bool)
    ladder = [
        found.surrogate.values(torch.full((1, LENGTH), log_p), here).item()
        for log_p in (-9.0, -6.0, -3.0, 0.0)
    ]
    losses = [abs(value - ladder[-1]) for value in ladder]
    # Far away the loss still falls by a share of the whole with every step.
    assert losses == sorted(losses, reverse=True)
    assert losses[0] - losses[1] > 0.05 * losses[0]


def recorded(count=240):
    """Outputs that become better with time."""
    texts = [text for text, _ in random_texts(6 * count, seed=5)]
    references = [text for text in texts if text.count(" ") > 3][:count]
    drawn = torch.rand(2, count, LENGTH, generator=make_generator("noise"))
    right = drawn[0] < torch.linspace(0.2, 1, count)[:, None]
    return Groups(*asked(0.05 + 0.4 * drawn[1] + 0.5 * right, references))


@pytest.mark.parametrize("anchored", [False, True])
def test_a_surrogate_learns_to_rank_groups_of_sentences(anchored):
    torch.manual_seed(0)
    fitting = Fitting(
        epochs=8,
        groups=8,
        group_size=10,
        held_out=24,
        penalty=0.1,
        anchored=anchored,
        unit_slope=True,
    )
    found = fit_surrogate(
        SentenceKind(),
        recorded(),
        costs_by(CorpusBleu()),
        fitting,
        make_generator("fit"),
    )
    assert found.rank_correlation > 0.7 and found.base > 0.7
    assert found.held_out.shape == (3, 24)


def test_the_penalty_of_slopes_has_a_gradient():
    torch.manual_seed(0)
    surrogate = SentenceSurrogate(LENGTH)
    outputs, targets = recorded(12)
    groups = Groups(outputs.unflatten(0, (3, 4)), targets.unflatten(0, (3, 4)))
    _, penalty = gradient_penalty(surrogate, groups)
    penalty.backward()
    assert surrogate.entry.weight.grad.abs().sum() > 0


def test_the_loss_of_the_length_stays_beside_it():
    torch.manual_seed(0)
    kind, surrogate = SentenceKind(), SentenceSurrogate(LENGTH)
    outputs, targets = recorded(6)
    expected = surrogate(outputs, targets) + 0.1 * length_loss(outputs, targets)
    assert torch.equal(kind.beside(surrogate)(outputs, targets), expected)


def test_other_outputs_are_refused_before_training():
    kind, (outputs, targets) = KINDS.get("sentences")(), recorded(4)
    kind.check(outputs, targets)
    with pytest.raises(
        ShapeError, match=r"outputs \[N, 1 \+ L, 2, K \+ 8\], got \[4, 7"
    ):
        kind.check(outputs[:, :, :1], targets)
    with pytest.raises(DataError, match="needs packed sentences"):
        kind.check(outputs, torch.zeros(4))
    with pytest.raises(ShapeError, match="of sentences of 5 places, got 6"):
        SentenceSurrogate(5)(outputs, targets)

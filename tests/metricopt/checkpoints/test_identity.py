"""What tells a map or a loss from one with other options, and what does not."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from metricopt.checkpoints.identity import identity_of
from metricopt.geometry import BlockIAF, ExactPotential, Kronecker

PARAMETERS = {"weight": torch.zeros(3, 2), "bias": torch.zeros(3)}

ONE_BLOCK, TWO_BLOCKS = [["weight", "bias"]], [["weight"], ["bias"]]


def drawn(seed, **options):
    return BlockIAF(
        PARAMETERS, generator=torch.Generator().manual_seed(seed), **options
    )


def smoothed(share):
    return lambda outputs, targets: cross_entropy(
        outputs, targets, label_smoothing=share
    )


class Weighted:
    def __init__(self, weight):
        self.weight, self.log = weight, []

    def __call__(self, outputs, targets):
        return self.weight * cross_entropy(outputs, targets)

    def halved(self, outputs, targets):
        return self(outputs, targets) / 2


def with_default(share):
    def loss(outputs, targets, *, smoothing=share):
        return cross_entropy(outputs, targets, label_smoothing=smoothing)

    return loss


@pytest.mark.parametrize(
    "make",
    [
        lambda option: drawn(0, scale=("2-sigmoid", "exp")[option]),
        lambda option: drawn(0, blocks=(ONE_BLOCK, TWO_BLOCKS)[option]),
        lambda option: nn.CrossEntropyLoss(label_smoothing=option / 10),
        lambda option: nn.Sequential(nn.Dropout(option / 10)),
        lambda option: partial(cross_entropy, label_smoothing=option / 10),
        lambda option: partial(cross_entropy, weight=torch.full((3,), 1.0 + option)),
        smoothed,
        with_default,
        Weighted,
        lambda option: Weighted(option).halved,
        lambda option: (Weighted(1), Weighted(1).halved)[option],
    ],
)
def test_options_tell_objects_apart(make):
    assert identity_of(make(0)) == identity_of(make(0))
    assert identity_of(make(0)) != identity_of(make(1))


def test_weights_and_logs_are_no_options():
    assert identity_of(drawn(0)) == identity_of(drawn(1))
    kronecker = drawn(0, blocks=TWO_BLOCKS, conditioner=Kronecker())
    kinds = [kronecker, drawn(0, blocks=TWO_BLOCKS), ExactPotential(PARAMETERS)]
    assert len(set(map(identity_of, kinds))) == 3
    loss = Weighted(1.0)
    before = identity_of(loss)
    loss.log.append(2.0)
    assert identity_of(loss) == before


def weighted(weight):
    """A loss with class weights, in a module that a function holds."""
    module = nn.CrossEntropyLoss(weight=torch.tensor([1.0, weight]))
    return module, lambda outputs, targets: module(outputs, targets)


@pytest.mark.parametrize("within", [0, 1])
def test_weights_tell_objects_apart_where_they_are_asked_for(within):
    first, same, other = (weighted(weight)[within] for weight in (1.0, 1.0, 2.0))
    assert identity_of(first) == identity_of(other)
    assert identity_of(first, weights=True) == identity_of(same, weights=True)
    assert identity_of(first, weights=True) != identity_of(other, weights=True)
    layers = [nn.Sequential(nn.Linear(2, 2)) for _ in range(2)]
    assert len({identity_of(each, weights=True) for each in layers}) == 2


def test_an_object_that_holds_itself_has_an_identity():
    loss = Weighted(1.0)
    loss.own = loss
    assert identity_of(loss) == identity_of(loss)

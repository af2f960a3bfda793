"""The margin loss and distance-weighted sampling: golden vectors, loops, draws."""

import math

import pytest
import torch
from torch import nn

from baselines.embedding_losses.contract import make_embedding_loss
from baselines.embedding_losses.distance_weighted import (
    draw_triplets,
    negative_probabilities,
)
from metricopt.errors import DataError
from metricopt.process.seeding import make_generator
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("margin_distance_weighted"))


def unit(*shape, seed=0, spread=1.0):
    """Directions around a common one; a smaller spread brings them closer."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return nn.functional.normalize(1 + spread * drawn, dim=-1)


def make(classes, size, **settings):
    return make_embedding_loss("margin", classes=classes, size=size, **settings)


def naive_probabilities(embeddings, targets):
    size, rows = embeddings.shape[1], []
    for i, anchor in enumerate(embeddings):
        logs = []
        for j, other in enumerate(embeddings):
            distance = (anchor - other).norm().item()
            if targets[i] == targets[j] or distance >= 1.4:
                logs.append(-math.inf)
                continue
            distance = max(distance, 0.5)
            inside = 1 - distance**2 / 4
            logs.append(
                -(size - 2) * math.log(distance) - (size - 3) / 2 * math.log(inside)
            )
        largest = max(logs)
        if largest == -math.inf:
            rows.append([0.0] * len(logs))
            continue
        weights = [math.exp(log - largest) for log in logs]
        rows.append([weight / sum(weights) for weight in weights])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    inputs, expected, tolerance = case.inputs, case.expected, case.tolerance
    embeddings, beta = inputs["embeddings"].requires_grad_(), inputs["beta_per_class"]
    unit = nn.functional.normalize(embeddings.detach(), dim=1)
    found = negative_probabilities(unit, inputs["labels"])
    wanted = expected["negative_sampling_probability"]
    # Where no negative is admissible, the package has 0 / 0.
    assert_golden(found, torch.where(wanted.isnan(), 0, wanted), tolerance)
    settings = {"alpha": case.settings["margin"]}
    loss = make(len(beta), embeddings.shape[1], **settings).double()
    loss.beta.data.copy_(beta)
    triplets = inputs["triplets"].unbind(1)
    value = loss.of_triplets(embeddings, inputs["labels"], triplets)
    value.backward()
    assert_golden(value.detach(), expected["margin_loss"], tolerance)
    assert_golden(embeddings.grad, expected["margin_grad_embeddings"], tolerance)
    assert_golden(loss.beta.grad, expected["margin_grad_beta"], tolerance)


@pytest.mark.parametrize(("size", "spread"), [(2, 1.0), (3, 1.0), (8, 2.0), (64, 5.0)])
def test_probabilities_equal_a_loop(size, spread):
    embeddings, targets = unit(15, size, spread=spread), torch.arange(15) % 4
    found = negative_probabilities(embeddings, targets)
    torch.testing.assert_close(found, naive_probabilities(embeddings, targets))


def test_rows_do_not_underflow_in_many_dimensions():
    """One near pair would take all the weight, divided by the largest of all rows."""
    embeddings = unit(20, 512, spread=1.0).float()
    embeddings[1] = nn.functional.normalize(embeddings[0] + 1e-3, dim=0)
    targets = torch.arange(20)
    found = negative_probabilities(embeddings, targets)
    torch.testing.assert_close(found.sum(1), torch.ones(20))
    assert found[0, 1] > 0.999


def test_negatives_are_drawn_as_often_as_they_are_probable():
    """Equal anchors, so that one call draws thousands of negatives for one of them."""
    others = unit(8, 4, seed=1, spread=1.5)
    embeddings = torch.cat([others[:1].expand(150, 4), others[1:]])
    targets = torch.tensor([0] * 150 + [0, 1, 1, 2, 3, 4, 5])
    anchors, _, negatives = draw_triplets(embeddings, targets, make_generator("a"))
    drawn = negatives[anchors < 150]
    assert len(drawn) == 150 * 150
    shares = drawn.bincount(minlength=157) / len(drawn)
    probabilities = negative_probabilities(embeddings, targets)[0]
    assert (probabilities > 0.05).sum() > 2
    assert (shares - probabilities).abs().max() < 0.01
    assert (shares[probabilities == 0] == 0).all()


def test_every_pair_comes_once_and_anchors_without_negatives_are_left_out():
    # The third class is opposite to all others: nothing is near enough.
    directions = torch.tensor([[1.0, 0, 0], [0.9, 0.4, 0], [-1.0, 0, 0]])
    targets = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    embeddings = nn.functional.normalize(directions, dim=1)[targets]
    anchors, positives, negatives = draw_triplets(
        embeddings, targets, make_generator("a")
    )
    pairs = sorted(zip(anchors.tolist(), positives.tolist(), strict=True))
    own = [(i, j) for i in range(3) for j in range(3) if i != j]
    assert pairs == [*own, (3, 4), (4, 3)]
    assert torch.equal(targets[negatives], 1 - targets[anchors])


def test_loss_by_hand():
    """Distances of 1 within the class and sqrt(2 - sqrt 3) to the negative."""
    angles = torch.tensor([0.0, 60.0, 30.0]).deg2rad()
    embeddings = torch.stack([angles.cos(), angles.sin()], 1).double()
    loss = make(2, 2, beta=0.9)
    distance = math.sqrt(2 - math.sqrt(3))
    # Both anchors: the positive is farther than beta - alpha, the negative too near.
    pulled, pushed = 1 - 0.9 + 0.2, 0.9 - distance + 0.2
    value = loss(embeddings, torch.tensor([0, 0, 1]))
    assert value.item() == pytest.approx((pulled + pushed) / 2, rel=1e-6)
    value.backward()
    # Each of four terms, half of them with either sign, is divided by four.
    torch.testing.assert_close(loss.beta.grad, torch.zeros(2))


def test_only_betas_of_anchors_have_gradients():
    targets = torch.tensor([0, 0, 3, 3, 4, 5])
    loss = make(6, 4)
    loss(unit(6, 4, spread=0.1), targets).backward()
    assert loss.beta.shape == (6,)
    assert (loss.beta.grad != 0).tolist() == [True, False, False, True, False, False]


def test_the_draw_depends_on_the_targets():
    embeddings = unit(24, 6)
    loss, values = make(30, 6), []
    for first in range(8):
        values.append(loss(embeddings, torch.arange(24) % 3 + first).item())
    assert len(set(values)) > 5
    assert values[0] == loss(embeddings, torch.arange(24) % 3).item()


def test_a_class_too_many_is_named():
    with pytest.raises(DataError, match="classes=3 needs targets below that, got 3"):
        make(3, 4)(unit(4, 4), torch.tensor([0, 0, 3, 3]))

"""The triplet loss against golden vectors and a loop over all triplets."""

import pytest
import torch

from baselines.embedding_losses.contract import make_embedding_loss
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("margin_distance_weighted"))


def make(size, margin):
    return make_embedding_loss("triplet", classes=9, size=size, margin=margin)


def naive(embeddings, targets, margin):
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    squared = (unit[:, None] - unit).square().sum(-1).tolist()
    labels, terms = targets.tolist(), []
    for a, label in enumerate(labels):
        for p, other in enumerate(labels):
            for n, third in enumerate(labels):
                gap = squared[a][n] - squared[a][p]
                if a != p and label == other != third and 0 < gap <= margin:
                    terms.append(margin - gap)
    return sum(terms) / len(terms), len(terms)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    embeddings = case.inputs["embeddings"].requires_grad_()
    triplet = make(embeddings.shape[1], case.settings["margin"])
    loss = triplet.of_triplets(embeddings, case.inputs["triplets"].unbind(1))
    loss.backward()
    expected, tolerance = case.expected, case.tolerance
    assert_golden(loss.detach(), expected["triplet_squared_mean"], tolerance)
    gradient = expected["triplet_squared_mean_grad_embeddings"]
    assert_golden(embeddings.grad, gradient, tolerance)


@pytest.mark.parametrize("margin", [0.05, 0.2, 1.0])
def test_equals_a_loop_over_semi_hard_triplets(margin):
    generator = torch.Generator().manual_seed(2)
    embeddings = torch.randn(14, 4, generator=generator, dtype=torch.float64)
    targets = torch.arange(14) % 4
    expected, count = naive(embeddings, targets, margin)
    assert count > 5
    assert make(4, margin)(embeddings, targets).item() == pytest.approx(expected)

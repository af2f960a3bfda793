"""The multi-similarity loss against a loop over anchors."""

import math

import pytest
import torch

from baselines.embedding_losses.contract import make_embedding_loss


def naive(embeddings, targets, *, alpha=2.0, beta=50.0, base=0.5, epsilon=0.1):
    """Mining and weighting of the paper, anchor by anchor; and the pairs mined."""
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    cosines, labels, terms, mined = (unit @ unit.T).tolist(), targets.tolist(), [], 0
    for i, row in enumerate(cosines):
        own = [s for j, s in enumerate(row) if j != i and labels[j] == labels[i]]
        others = [s for j, s in enumerate(row) if labels[j] != labels[i]]
        hard_own = [s for s in own if s - epsilon < max(others)]
        hard_others = [s for s in others if own and s + epsilon > min(own)]
        mined += len(hard_own) + len(hard_others)
        pulled = sum(math.exp(-alpha * (s - base)) for s in hard_own)
        pushed = sum(math.exp(beta * (s - base)) for s in hard_others)
        terms.append(math.log1p(pulled) / alpha + math.log1p(pushed) / beta)
    return sum(terms) / len(terms), mined


@pytest.mark.parametrize(
    "settings",
    [{}, {"alpha": 1.0, "beta": 10.0, "base": 0.2}, {"epsilon": 0.0}, {"epsilon": 3.0}],
)
def test_equals_a_loop(settings):
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.randn(13, 6, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4])
    loss = make_embedding_loss("multi-similarity", classes=5, size=6, **settings)
    expected, mined = naive(embeddings, targets, **settings)
    assert mined > 20
    assert loss(embeddings, targets).item() == pytest.approx(expected)

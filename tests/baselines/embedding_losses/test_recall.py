"""The recall loss: golden vectors, and a loop that counts."""

import math

import pytest
import torch
from torch import nn

from baselines.embedding_losses.contract import make_embedding_loss
from baselines.losses.blackbox_ranking import recall_loss
from tests.golden import load_golden

SETTINGS = {"margin": 0.02, "lam": 4.0}


def make(size, **settings):
    return make_embedding_loss("recall", classes=9, size=size, **settings)


def batch(seed, examples=12, size=5):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(examples, size, generator=generator, dtype=torch.float64)
    targets = torch.randint(4, (examples,), generator=generator)
    return embeddings.requires_grad_(), targets


def naive(queries, targets, *, margin=0.02):
    """Count, for every positive of every query, the others that are ahead of it."""
    queries = nn.functional.normalize(queries.detach(), dim=1)
    gallery = list(zip(queries, targets.tolist(), strict=True))
    terms = []
    for i, (query, label) in enumerate(gallery):
        rest = [item for j, item in enumerate(gallery) if j != i]
        own = [float(query @ image) for image, other in rest if other == label]
        others = [float(query @ image) for image, other in rest if other != label]
        for cosine in own:
            ahead = sum(other > cosine - margin for other in others)
            terms.append(math.log1p(math.log1p(ahead)))
    return sum(terms) / len(terms)


def test_golden_scores_are_cosines_without_the_query_itself():
    """Embeddings are made that have the scores of the golden vectors as cosines."""
    case = next(c for c in load_golden("rambo_recall") if c.name == "sop_like_loglog")
    off = case.inputs["scores"]
    count = len(off)
    cosines = torch.eye(count, dtype=torch.float64)
    others = ~torch.eye(count, dtype=torch.bool)
    cosines[others] = off.flatten()
    # Vectors of unit length that have these cosines: a square root of the matrix.
    values, vectors = torch.linalg.eigh(cosines)
    assert values.min() > -1e-9
    embeddings = vectors * values.clamp(min=0).sqrt()
    relevant = torch.zeros(count, count, dtype=torch.bool)
    relevant[others] = case.inputs["relevance"].flatten() == 1
    targets = (relevant | ~others).double().argmax(1)
    loss = make(count, margin=case.settings["margin"], lam=case.settings["lambda"])
    assert torch.equal((targets[:, None] == targets) & others, relevant)
    assert loss(embeddings, targets).item() == pytest.approx(
        case.expected["loss_length_denormalised"]
    )


@pytest.mark.parametrize("margin", [0.0, 0.02, 0.3])
def test_equals_a_loop(margin):
    embeddings, targets = batch(0)
    loss = make(5, margin=margin)(embeddings, targets)
    assert loss.item() == pytest.approx(naive(embeddings, targets, margin=margin))


def test_gradient_is_that_of_the_scores():
    embeddings, targets = batch(1)
    make(5)(embeddings, targets).backward()
    again = embeddings.detach().requires_grad_()
    unit = again / again.norm(dim=1, keepdim=True)
    others = ~torch.eye(12, dtype=torch.bool)
    scores = (unit @ unit.T)[others].view(12, 11)
    relevant = (targets[:, None] == targets)[others].view(12, 11)
    recall_loss(scores, relevant, **SETTINGS).backward()
    assert embeddings.grad.abs().sum() > 0
    torch.testing.assert_close(embeddings.grad, again.grad)

"""The recall loss: golden vectors, a loop that counts, and the memory."""

import copy
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


def naive(queries, targets, past=(), *, margin=0.02):
    """Count, for every positive of every query, the others that are ahead of it."""
    queries = nn.functional.normalize(queries.detach(), dim=1)
    gallery = list(zip(queries, targets.tolist(), strict=True))
    for embeddings, labels in past:
        unit = nn.functional.normalize(embeddings.detach(), dim=1)
        gallery += zip(unit, labels.tolist(), strict=True)
    terms = []
    for i, (query, label) in enumerate(gallery[: len(queries)]):
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


def test_the_gallery_holds_as_many_earlier_mini_batches_as_are_remembered():
    loss, batches = make(5, memory=2), [batch(seed) for seed in range(5)]
    for at, (embeddings, targets) in enumerate(batches):
        value = loss(embeddings, targets)
        past = batches[max(0, at - 2) : at]
        assert value.item() == pytest.approx(naive(embeddings, targets, past), rel=1e-6)
    value.backward()
    assert embeddings.grad.abs().sum() > 0
    assert all(earlier.grad is None for earlier, _ in batches[:-1])


def test_no_memory_by_default_and_none_in_evaluation_mode_or_without_gradients():
    (first, labels), (second, others) = batch(0), batch(1)
    for loss in (make(5), make(5, memory=3).eval()):
        loss(first, labels)
        value = loss(second, others)
        assert value.item() == pytest.approx(naive(second, others))
    loss = make(5, memory=3)
    with torch.no_grad():
        loss(first, labels)
    assert len(loss.past) == 0
    assert not make(5).state_dict()


def test_the_memory_is_in_the_state():
    loss = make(5, memory=3)
    for seed in range(2):
        loss(*batch(seed))
    again, fresh = make(5, memory=3), make(5, memory=3)
    again.load_state_dict(loss.state_dict())
    values = [each(*batch(2)) for each in (copy.deepcopy(loss), loss, again)]
    assert torch.stack(values).unique().numel() == 1
    assert fresh(*batch(2)) != values[0]

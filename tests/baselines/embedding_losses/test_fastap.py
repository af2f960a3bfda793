"""FastAP against golden vectors and a loop over anchors and bins."""

import pytest
import torch

from baselines.embedding_losses.contract import make_embedding_loss
from tests.golden import assert_golden, load_golden


def make(size, bins):
    return make_embedding_loss("fastap", classes=9, size=size, bins=bins)


def naive(embeddings, targets, bins):
    """The formula of the paper, sum by sum."""
    unit = (embeddings / embeddings.norm(dim=1, keepdim=True)).tolist()
    width, precisions = 4 / bins, []
    for i, anchor in enumerate(unit):
        own = [0.0] * (bins + 1)
        every = [0.0] * (bins + 1)
        for j, other in enumerate(unit):
            squared = sum((a - b) ** 2 for a, b in zip(anchor, other, strict=True))
            for k in range(bins + 1):
                weight = max(0.0, 1 - abs(squared - k * width) / width)
                if i != j:
                    every[k] += weight
                    own[k] += weight * (targets[i] == targets[j]).item()
        positives = (targets == targets[i]).sum().item() - 1
        if positives:
            terms = [
                own[k] * sum(own[: k + 1]) / sum(every[: k + 1])
                for k in range(bins + 1)
                if own[k] > 0
            ]
            precisions.append(sum(terms) / positives)
    return 1 - sum(precisions) / len(precisions)


def test_golden():
    names = []
    for name, settings, inputs, expected, tolerance in load_golden("fastap"):
        embeddings = inputs["embeddings"].requires_grad_()
        loss = make(embeddings.shape[1], settings["num_bins"])(
            embeddings, inputs["labels"]
        )
        loss.backward()
        assert_golden(loss.detach(), expected["loss"], tolerance)
        assert_golden(embeddings.grad, expected["grad_raw_embeddings"], tolerance)
        names.append(name)
    assert names == ["bins10", "bins5", "pairs_only", "with_singleton"]


@pytest.mark.parametrize("bins", [1, 4, 10])
def test_equals_a_loop(bins):
    generator = torch.Generator().manual_seed(bins)
    embeddings = torch.randn(11, 5, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4])
    loss = make(5, bins)(embeddings, targets)
    assert loss.item() == pytest.approx(naive(embeddings, targets, bins))

"""FastAP against golden vectors and a loop over anchors and bins."""

import pytest
import torch

from baselines.embedding_losses.contract import make_embedding_loss
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("fastap"))


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


@pytest.mark.parametrize(
    "case", list(load_golden("fastap")), ids=lambda case: case.name
)
def test_golden(case):
    embeddings = case.inputs["embeddings"].requires_grad_()
    fastap = make(embeddings.shape[1], case.settings["num_bins"])
    loss = fastap(embeddings, case.inputs["labels"])
    loss.backward()
    assert_golden(loss.detach(), case.expected["loss"], case.tolerance)
    gradient = case.expected["grad_raw_embeddings"]
    assert_golden(embeddings.grad, gradient, case.tolerance)


@pytest.mark.parametrize("bins", [1, 4, 10])
def test_equals_a_loop(bins):
    generator = torch.Generator().manual_seed(bins)
    embeddings = torch.randn(11, 5, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4])
    loss = make(5, bins)(embeddings, targets)
    assert loss.item() == pytest.approx(naive(embeddings, targets, bins))

"""Groups of recorded logits with labels that are made for them: data of ReLoss."""

from typing import NamedTuple

import torch
from torch import Tensor

from baselines.learned_losses.class_correlation import log_probabilities


class Groups(NamedTuple):
    """Groups of logits [G, n, C] with the labels [G, n] that were made for them."""

    outputs: Tensor
    targets: Tensor


def make_groups(logits: Tensor, size: int, generator: torch.Generator) -> Groups:
    """Return groups of consecutive logits with new labels, from all right to chance.

    A label is the predicted class up to a uniform place in the group, and a uniform
    class behind it.

    Args:
        logits: shape [N, C], or [N, 1] for two classes; what exceeds a multiple of
            `size` is left out.
        size: examples n of a group.
        generator: source of the labels, on the CPU.
    """
    count = len(logits) // size
    outputs = logits[: count * size].unflatten(0, (count, size))
    log_p = log_probabilities(outputs)
    cuts = torch.randint(size + 1, (count, 1), generator=generator)
    others = torch.randint(log_p.shape[-1], (count, size), generator=generator)
    right = torch.arange(size) < cuts
    targets = log_p.argmax(-1).where(right.to(logits.device), others.to(logits.device))
    return Groups(outputs, targets)


def group_cross_entropy(groups: Groups) -> Tensor:
    """Return the cross-entropy of every group, shape [...], in nats."""
    log_p = log_probabilities(groups.outputs)
    return -log_p.gather(-1, groups.targets.long()[..., None])[..., 0].mean(-1)

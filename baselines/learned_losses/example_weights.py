"""Losses of single examples, and weights for them."""

from torch import Tensor
from torch.nn import functional

from metricopt.losses.contract import check_arguments


def cross_entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of every example, shape [n], in nats.

    Args:
        outputs: one logit [n, 1] or class logits [n, C].
        targets: labels, shape [n].
    """
    check_arguments(outputs, targets)
    if outputs.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(
            outputs[:, 0], targets.to(outputs.dtype), reduction="none"
        )
    return functional.cross_entropy(outputs, targets, reduction="none")


def example_weights(scores: Tensor) -> Tensor:
    """Return weights of mean 1 for the scores of a mini-batch: sigmoid, normalised."""
    weights = scores.sigmoid()
    return weights / weights.mean()

"""The loss of translations written all places at once: pieces, and a length."""

import torch
from torch import Tensor

from metricopt.structured.sentences import (
    NOTHING,
    lists,
    log_probabilities,
    unpacked,
)

SMOOTHING = 0.1
"""Share of the target that is spread over all candidates."""
LENGTH = 0.1
"""Weight of the loss of the length."""


def piece_log_probabilities(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of the pieces of references, and which places have one.

    A piece that was given to the network has 0: it is right for certain.

    Args:
        outputs: shape [..., 1 + L, 2, K + 8].
        targets: packed sentences, shape [..., L + A].

    Returns:
        Both of shape [..., L].
    """
    pieces = unpacked(targets, outputs.shape[-3] - 1).pieces
    found = log_probabilities(lists(outputs)[..., 1:, :, :], pieces)
    return found, pieces != NOTHING


def length_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of the lengths of references, shape [...].

    Args:
        outputs: shape [..., n, 1 + L, 2, K + 8].
        targets: packed sentences, shape [..., n, L + A].
    """
    _, here = piece_log_probabilities(outputs, targets)
    lengths = lists(outputs)[..., 0, :, :]
    log_p = log_probabilities(lengths, here.sum(-1))
    return -_smoothed(log_p, lengths).mean(-1)


def piece_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of the pieces of references, shape [...].

    Pieces that were given count as right: the mean is over all places. See
    `length_loss` for the arguments.
    """
    log_p, here = piece_log_probabilities(outputs, targets)
    each = -_smoothed(log_p, outputs[..., 1:, :, :]) * here
    return each.sum((-2, -1)) / here.sum((-2, -1)).clamp_min(1)


class SentenceLoss(torch.nn.Module):
    """Cross-entropy of pieces, and a tenth of that of the length, in nats.

    Both have smooth labels.

    Source: Ghazvininejad et al., EMNLP 2019, and its published code. Differs: the mean
        is over all pieces, and given ones count as right; theirs is over hidden ones.
    """

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of outputs [n, 1 + L, 2, K + 8], a scalar."""
        return self.row_losses(outputs, targets)

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the losses [...] of outputs [..., n, 1 + L, 2, K + 8]."""
        return piece_loss(outputs, targets) + LENGTH * length_loss(outputs, targets)


def _smoothed(log_p: Tensor, outputs: Tensor) -> Tensor:
    """Return log-probabilities mixed with the mean of all candidates."""
    return (1 - SMOOTHING) * log_p + SMOOTHING * outputs[..., 0, 0]

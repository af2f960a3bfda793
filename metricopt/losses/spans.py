"""The loss of spans: cross-entropy of their first and their last place."""

import torch
from torch import Tensor

from metricopt.structured.spans import masked, unpacked


def span_log_probabilities(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the log-probabilities of the first and the last place, shape [..., n, 2].

    Args:
        scores: shape [..., n, 2, L].
        targets: packed spans, shape [..., n, 2 + L + R A].
    """
    spans = unpacked(targets, scores.shape[-1])
    log_p = masked(scores, spans).log_softmax(-1)
    places = torch.stack([spans.first, spans.last], -1)
    found: Tensor = log_p.gather(-1, places[..., None])[..., 0]
    return found


class SpanLoss(torch.nn.Module):
    """The mean cross-entropy of first and last place, in nats.

    Source: Devlin et al., NAACL 2019.
    """

    def forward(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of scores [n, 2, L] and packed spans, a scalar."""
        return self.row_losses(scores[None], targets[None])[0]

    def row_losses(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return the losses [...] of scores [..., n, 2, L] and packed spans."""
        return -span_log_probabilities(scores, targets).mean((-2, -1))

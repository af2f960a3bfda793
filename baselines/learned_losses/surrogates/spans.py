"""The surrogate of spans, which reads the probabilities of both ends of the answer.

Source: Huang et al., ICLR 2022, who publish no code for reading: the surrogate of
classes, of the two places that are right instead of one class.
"""

from typing import Any

import torch
from torch import Tensor, nn

from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    Surrogate,
    SurrogateKind,
)
from metricopt.errors import DataError, ShapeError
from metricopt.losses.spans import SpanLoss, span_log_probabilities
from metricopt.structured.spans import are_spans, unpacked


class SpanSurrogate(Surrogate):
    """A loss: the mean of |h(p, q)|, p and q the probabilities of both right places.

    h is 2-128-128-128-1 with ELU. `anchored`, which is ours, is |h(p, q) - h(1, 1)|.

    Args:
        width: width of the hidden layers.
        anchored: whether no p and q have a smaller loss than 1 and 1, where it is 0.
    """

    def __init__(self, width: int = 128, *, anchored: bool = False) -> None:
        super().__init__(anchored=anchored)
        self.h = nn.Sequential(
            nn.Linear(2, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, 1),
        )

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group, shape [...], not negative.

        Args:
            outputs: scores of both ends, shape [..., n, 2, L].
            targets: packed spans, shape [..., n, 2 + L + R A].
        """
        right = span_log_probabilities(outputs, targets).exp()
        values = self.h(right)
        if self.anchored:
            values = values - self.h(torch.ones_like(right[..., :1, :]))
        losses: Tensor = self.scale * values[..., 0].abs().mean(-1)
        return losses


@KINDS.register("spans")
class SpanKind(SurrogateKind):
    """Scores of the first and the last place of answers, with the packed answers."""

    loss = SpanLoss()
    shape = "[2, L]"

    def check(self, outputs: Any, targets: Any) -> None:
        """Check that outputs are scores of the places of packed spans."""
        if (
            not isinstance(outputs, Tensor)
            or outputs.ndim != 3
            or outputs.shape[1] != 2
        ):
            got = list(outputs.shape) if isinstance(outputs, Tensor) else "a tuple"
            raise ShapeError(f"a surrogate of spans needs scores [N, 2, L], got {got}")
        if not are_spans(targets):
            raise DataError("a surrogate of spans needs packed spans")
        unpacked(targets, outputs.shape[-1])

    def make(self, recorded: Groups, *, anchored: bool) -> SpanSurrogate:
        """Return a surrogate with random weights, for inputs of any length."""
        return SpanSurrogate(anchored=anchored)

    def base_losses(self, groups: Groups) -> Tensor:
        """Return the cross-entropy of every group."""
        return self.loss.row_losses(groups.outputs, groups.targets)

"""The surrogate of spans, which reads the probabilities of both ends of the answer.

Source: Huang et al., ICLR 2022, who publish no code for reading: the surrogate of
classes, of the two places that are right instead of one class.
"""

from typing import Any

from torch import Tensor

from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    ProbabilitySurrogate,
    SurrogateKind,
)
from metricopt.errors import DataError, ShapeError
from metricopt.losses.spans import SpanLoss, span_log_probabilities
from metricopt.structured.spans import are_spans, unpacked


class SpanSurrogate(ProbabilitySurrogate):
    """A loss of the probabilities of both right places; see `ProbabilitySurrogate`."""

    probabilities = 2

    def right(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the probabilities of both right places, shape [..., n, 2].

        Args:
            outputs: scores of both ends, shape [..., n, 2, L].
            targets: packed spans, shape [..., n, 2 + L + R A].
        """
        return span_log_probabilities(outputs, targets).exp()


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

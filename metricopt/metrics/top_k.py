"""Top-k accuracy."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError
from metricopt.metrics.base import METRICS, Metric, check_labels, check_outputs


@METRICS.register("top-k")
class TopK(Metric):
    """Share of examples whose label is among the k greatest logits, in [0, 1].

    On ties the class with the lower index comes first, so top-1 is exactly 1 - MCR.

    Args:
        k: number of guesses, from 1 to the number of classes C.

    Raises:
        ConfigError: if k is less than 1.
    """

    higher_is_better = True

    def __init__(self, k: int = 5) -> None:
        if k < 1:
            raise ConfigError(f"top-k needs k >= 1, got {k}")
        self.k = k
        self.name = f"top-{k}"

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        classes = outputs.shape[1]
        if classes < max(self.k, 2):
            raise ShapeError(
                f"metric {self.name!r} needs outputs [N, C] with "
                f"C >= {max(self.k, 2)} class logits, got C = {classes}"
            )
        check_labels(self.name, targets, classes)
        check_outputs(self.name, outputs)
        return float((_ranks(outputs, targets.long()) < self.k).double().mean())


@METRICS.register("top-1")
class Top1(TopK):
    """Share of examples whose label has the greatest logit: the accuracy."""

    def __init__(self) -> None:
        super().__init__(1)


@METRICS.register("top-5")
class Top5(TopK):
    """Share of examples whose label is among the five greatest logits."""

    def __init__(self) -> None:
        super().__init__(5)


def _ranks(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return how many classes come before the label, shape [N]."""
    own = outputs.gather(1, targets[:, None])
    before = torch.arange(outputs.shape[1], device=outputs.device) < targets[:, None]
    return ((outputs > own) | ((outputs == own) & before)).sum(1)

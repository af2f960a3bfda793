"""AUCPR loss: recall at many precisions, as a saddle point over multipliers.

Source: Eban et al., AISTATS 2017; code by the authors at
https://github.com/tensorflow/models (research/global_objectives). Differs: the class
frequencies are given instead of counted, and examples have no weights.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, softplus

from baselines.losses.contract import LOSSES
from metricopt.errors import ConfigError, require_ranges
from metricopt.losses.contract import LossProperties, RowLoss, one_versus_rest

SURROGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": softplus,
    "hinge": lambda logit: relu(1 + logit),
}


@LOSSES.register("aucpr")
class AUCPRLoss(RowLoss):
    """Bound of the area under the precision-recall curve, one versus rest.

    The multipliers and biases are trained with the network, by the same optimiser,
    and may be frozen afterwards. Examples are ranked by their logits alone, without the
    biases. The loss may be negative.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        anchors: number K of precisions k / (K + 1).
        priors: frequency of every class in the mini-batches, C numbers in (0, 1); with
            one logit, the frequency of positives. None for equally frequent classes.
        surrogate: "logistic" or "hinge".
        dual_rate: learning rate of the multipliers, which ascend, as a multiple of the
            rate of everything else, which descends; above 0.

    Attributes:
        multipliers: Lagrange multipliers, whose sign does not matter, shape [C, K].
        biases: added to the logits at every anchor, shape [C, K].

    Raises:
        ConfigError: if a setting is out of its range.
    """

    properties = LossProperties(independent=True, needs_every_class=True)
    priors: Tensor

    def __init__(
        self,
        classes: int,
        *,
        anchors: int = 20,
        priors: Sequence[float] | None = None,
        surrogate: str = "logistic",
        dual_rate: float = 0.1,
    ) -> None:
        super().__init__(classes)
        if priors is None:
            priors = [1 / max(classes, 2)] * classes
        if surrogate not in SURROGATES:
            raise ConfigError(
                f"aucpr needs a surrogate of {', '.join(SURROGATES)}, got "
                f"surrogate={surrogate!r}"
            )
        numbers = {"anchors": anchors, "dual_rate": dual_rate}
        require_ranges("aucpr", numbers, anchors=">= 1", dual_rate="> 0")
        if len(priors) != classes or not all(0 < prior < 1 for prior in priors):
            raise ConfigError(
                f"aucpr needs {classes} priors in (0, 1), got {list(priors)}"
            )
        self.surrogate = surrogate
        self.dual_rate = dual_rate
        self.multipliers = nn.Parameter(torch.ones(classes, anchors))
        self.biases = nn.Parameter(torch.zeros(classes, anchors))
        self.register_buffer("priors", torch.tensor(priors, dtype=torch.float32))

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        labels = one_versus_rest(targets, self.classes).to(outputs.dtype)
        return self.element_losses(outputs, labels).mean((1, 2))

    def element_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of every example and class, shape [..., C].

        Args:
            logits: shape [..., C].
            labels: 1 for examples of the class, else 0, shape [..., C].
        """
        penalty = SURROGATES[self.surrogate]
        anchors = torch.arange(1, self.biases.shape[1] + 1).to(self.biases)
        precision = anchors / (len(anchors) + 1)
        multipliers = self._reversed_multipliers()
        shifted, positive = logits[..., None] + self.biases, labels[..., None]
        missed = (1 + multipliers * (1 - precision)) * positive * penalty(-shifted)
        false_alarms = multipliers * precision * (1 - positive) * penalty(shifted)
        # The part of the constraint that does not depend on the logits.
        allowed = multipliers * (1 - precision) * self.priors[:, None]
        allowed = allowed * penalty(torch.zeros_like(precision))
        return (missed + false_alarms - allowed).mean(-1)

    def _reversed_multipliers(self) -> Tensor:
        # The value is |raw| with a reversed gradient: a descent step makes them ascend.
        size = self.multipliers.abs()
        return ((1 + self.dual_rate) * size).detach() - self.dual_rate * size

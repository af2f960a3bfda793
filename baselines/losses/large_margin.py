"""Large-margin softmax: the angle to the own class has to be m times smaller.

Source: Liu et al., ICML 2016; code by the authors at
https://github.com/wy1iu/LargeMargin_Softmax_Loss. Differs: the interval of the angle is
found from the cosine, which needs no arccos and no gradient of it; the annealing
follows the steps of the training instead of counting calls.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn import functional

from baselines.losses.contract import LOSSES
from metricopt.errors import ConfigError, require_ranges
from metricopt.losses.contract import LossProperties, RowLoss

SMALLEST = 1e-10
"""Added to |w||x| before dividing by it."""


class MarginHead(nn.Module):
    """Last layer of a network for `LargeMarginSoftmax`: no bias, and norms as well.

    Args:
        features: number of features D.
        classes: number of classes C.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Linear(features, classes, bias=False).weight

    def forward(self, features: Tensor) -> Tensor:
        """Return the C plain logits w_c x, then the C products |w_c||x|.

        Args:
            features: shape [..., D].

        Returns:
            Shape [..., 2 C].
        """
        logits = functional.linear(features, self.weight)
        lengths = vector_norm(features, dim=-1, keepdim=True)
        products = lengths * vector_norm(self.weight, dim=1)
        return torch.cat([logits, products], dim=-1)


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """How the weight of the plain logit falls during a training.

    After some steps it is max(least, start (1 + gamma step)^-power).

    Attributes:
        start: weight before the first step, at least 0.
        gamma: how fast it falls per step; the authors' CIFAR-10 example has 2e-5.
        power: exponent of the fall.
        least: value below which it does not fall, at least 0; the authors' examples
            have 0, which may stall a training with margin 4.
        steps: length of the training it is meant for, at least 1. In a shorter or
            longer one it falls faster or more slowly, to the same final value.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    gamma: float
    least: float
    steps: int
    start: float = 1000.0
    power: float = 45.0

    def __post_init__(self) -> None:
        least = {"start": ">= 0", "gamma": ">= 0", "least": ">= 0", "steps": ">= 1"}
        require_ranges("annealing", vars(self), **least)

    def at(self, step: int) -> float:
        """Return the weight after some steps of the training it is meant for."""
        fallen: float = self.start * (1 + self.gamma * step) ** -self.power
        return max(self.least, fallen)

    def of_training(self, step: int, steps: int) -> float:
        """Return the weight after some steps of a training of any length."""
        return self.at(round(step * self.steps / steps))


@LOSSES.register("large-margin")
class LargeMarginSoftmax(RowLoss):
    """Cross-entropy after the label's logit |w||x|cos(a) is lowered.

    It becomes |w||x| (annealing cos(a) + psi(a)) / (1 + annealing), with psi(a) =
    (-1)^k cos(m a) - 2 k for a in [k pi / m, (k + 1) pi / m]. Outputs are those of a
    `MarginHead`, shape [N, 2 C]; metrics and predictions take the first C columns.

    Args:
        classes: number of classes C, at least 2.
        margin: the m of the formula, at least 1; 1 is plain cross-entropy.
        annealing: weight of the plain logit, at least 0; or how it falls during a
            training, as `Annealing` or its settings by name.

    Attributes:
        annealing: current weight of the plain logit. If it falls, this is its first
            value until a training begins, and its last value after `finish`.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Liu et al., ICML 2016. Differs: Chebyshev's recurrence gives the cosine of
    the multiple angle, which allows any margin.
    """

    properties = LossProperties(outputs_per_class=2)

    def __init__(
        self,
        classes: int,
        *,
        margin: int = 4,
        annealing: float | Annealing | Mapping[str, float] = 5.0,
    ) -> None:
        super().__init__(classes)
        if isinstance(annealing, Mapping):
            annealing = _decoded(annealing)
        self._falling = annealing if isinstance(annealing, Annealing) else None
        weight = annealing.at(0) if isinstance(annealing, Annealing) else annealing
        self.margin, self.annealing = margin, weight
        least = {"classes": ">= 2", "margin": ">= 1", "annealing": ">= 0"}
        require_ranges("large-margin", vars(self), **least)

    def before_step(self, step: int, steps: int) -> None:
        """Set the annealing to its value after `step` of `steps` steps."""
        if self._falling is not None:
            self.annealing = self._falling.of_training(step, steps)

    def finish(self) -> None:
        """Set the annealing to its value at the end of a training."""
        self.before_step(1, 1)

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        logits = self.lowered_logits(outputs, targets)
        flat = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), reduction="none"
        )
        return flat.view(targets.shape).mean(1)

    def lowered_logits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the logits that enter the cross-entropy, shape [..., C].

        Args:
            outputs: outputs of a `MarginHead`, shape [..., 2 C].
            targets: labels, shape [...].
        """
        logits, products = outputs.chunk(2, dim=-1)
        label = targets[..., None]
        own, product = logits.gather(-1, label), products.gather(-1, label)
        psi = margin_of_cosine(own / (product + SMALLEST), self.margin)
        lowered = (self.annealing * own + product * psi) / (1 + self.annealing)
        return logits.scatter(-1, label, lowered)


def margin_of_cosine(cosine: Tensor, margin: int) -> Tensor:
    """Return psi, which falls from 1 to 1 - 2 m as the cosine falls from 1 to -1.

    Args:
        cosine: any shape, in [-1, 1].
        margin: the m of the formula.
    """
    before, multiple = torch.ones_like(cosine), cosine
    for _ in range(margin - 1):
        before, multiple = multiple, 2 * cosine * multiple - before
    ends = [math.cos(k * math.pi / margin) for k in range(1, margin)]
    interval = (cosine[..., None] < cosine.new_tensor(ends)).sum(-1)
    return (1 - 2 * (interval % 2)) * multiple - 2 * interval


def _decoded(settings: Mapping[str, float]) -> Annealing:
    try:
        return Annealing(**settings)  # type: ignore[arg-type]
    except TypeError as error:
        known = ", ".join(field.name for field in fields(Annealing))
        raise ConfigError(
            f"annealing needs gamma, least and steps, and knows {known}; got "
            f"{', '.join(settings) or 'none'}"
        ) from error

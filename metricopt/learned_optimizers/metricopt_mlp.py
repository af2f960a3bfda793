"""MetricOpt's optimizer: an MLP that sees loss and metric beside the gradient.

Source: Huang et al., CVPR 2021, supplement B, eq. (5).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError, require_ranges
from metricopt.learned_optimizers.contract import (
    LEARNED,
    LearnedOptimizer,
    Seen,
    State,
)
from metricopt.learned_optimizers.features import (
    gradient_size,
    normalised,
    relative_change,
    relative_loss,
    running_mean,
    time_left,
)
from metricopt.process.seeding import globally_seeded

HIDDEN = 32
LOSS_INPUTS = ("gradient", "mean gradient", "phi", "loss", "loss change")
METRIC_INPUTS = ("metric", "metric change")
SCALE_INPUTS = ("gradient size", "time")
"""Not in the paper: normalised gradients do not say how long they were."""
PAPER_INPUTS = (*LOSS_INPUTS, *METRIC_INPUTS)
ALL_INPUTS = (*PAPER_INPUTS, *SCALE_INPUTS)
GRADIENT_EPSILON, PHI_EPSILON = 1e-24, 1e-5
LARGEST_EXPONENT = 5.0


@LEARNED.register("metricopt-mlp")
class MetricOptMLP(LearnedOptimizer):
    """An MLP F-32-32-2: phi <- phi + alpha u, with alpha = scale * exp(exponent * m).

    The outputs are the direction u and the log-magnitude m of every coordinate; the
    exponent is kept within 5 of 0. The last layer starts at a tenth of the usual size,
    so that the first steps are small.

    Args:
        horizon: steps T that the optimizer is trained for.
        inputs: names of `ALL_INPUTS`; the paper's seven unless given. The metric is the
            one last shown, since the value function is dropped after training.
        scale: alpha where m is 0, positive.
        exponent: factor of m, at least 0.
        seed: seed of the first weights.

    Raises:
        ConfigError: if an argument is out of its range, or an input is not known.

    Source: Huang et al., CVPR 2021, supplement B, eq. (5); Metz et al., arXiv
    1810.10180. Differs: the paper does not print normalisations, widths or scales.
    """

    def __init__(
        self,
        horizon: int,
        inputs: Sequence[str] = PAPER_INPUTS,
        *,
        scale: float = 0.1,
        exponent: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(horizon)
        given = {"scale": scale, "exponent": exponent}
        require_ranges("MetricOptMLP", given, scale="> 0", exponent=">= 0")
        self._inputs = _known(inputs)
        self.scale, self.exponent = scale, exponent
        with globally_seeded(seed):
            self.network = two_hidden_layers(len(self._inputs), HIDDEN)
        with torch.no_grad():
            for weight in self.network[-1].parameters():
                weight.mul_(0.1)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return self._inputs

    @property
    def sees_loss(self) -> bool:
        """Whether the loss or its change is an input."""
        return not {"loss", "loss change"}.isdisjoint(self._inputs)

    @property
    def sees_metric(self) -> bool:
        """Whether the metric or its change is an input."""
        return not set(METRIC_INPUTS).isdisjoint(self._inputs)

    def settings(self) -> dict[str, Any]:
        """Return the arguments of an optimizer of the same form."""
        return {
            "horizon": self.horizon,
            "inputs": list(self._inputs),
            "scale": self.scale,
            "exponent": self.exponent,
        }

    def start(self, phi: Tensor) -> State:
        """Return running means of 0; those of loss and metric begin at step 0."""
        scalar = torch.zeros_like(phi[..., 0])
        names = ("first loss", "mean loss", "mean cost")
        return {"mean gradient": torch.zeros_like(phi)} | dict.fromkeys(names, scalar)

    def _move(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        if seen.step == 0:
            state = state | {
                "first loss": seen.loss,
                "mean loss": seen.loss,
                "mean cost": seen.cost,
            }
        state = state | {
            "mean gradient": running_mean(state["mean gradient"], seen.gradient)
        }
        direction, magnitude = self.network(self.features(seen, state)).unbind(-1)
        power = (self.exponent * magnitude).clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT)
        after = state | {
            "mean loss": running_mean(state["mean loss"], seen.loss),
            "mean cost": running_mean(state["mean cost"], seen.cost),
        }
        return self.scale * direction * power.exp(), after

    def features(self, seen: Seen, state: State) -> Tensor:
        """Return the inputs of every coordinate, shape [..., d, F].

        The mean gradient of the state includes the one seen; the means of loss and
        metric end before.
        """
        columns = [
            _feature(name, seen, state, self.horizon).expand_as(seen.phi)
            for name in self._inputs
        ]
        return torch.stack(columns, dim=-1)


def two_hidden_layers(inputs: int, width: int) -> nn.Sequential:
    """Return an MLP with ReLU and two outputs: direction and log-magnitude."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 2),
    )


def _known(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the names of inputs, if each is known and there once."""
    names = tuple(inputs)
    unknown = [name for name in names if name not in ALL_INPUTS]
    if unknown or not names or len(set(names)) < len(names):
        raise ConfigError(
            f"inputs must be different names of {', '.join(map(repr, ALL_INPUTS))}, "
            f"got {', '.join(map(repr, unknown or names)) or 'none'}"
        )
    return names


def _feature(name: str, seen: Seen, state: State, horizon: int) -> Tensor:
    """Return one input, [..., d] or [..., 1]."""
    match name:
        case "gradient":
            return normalised(seen.gradient, GRADIENT_EPSILON)
        case "mean gradient":
            return normalised(state["mean gradient"], GRADIENT_EPSILON)
        case "phi":
            return normalised(seen.phi, PHI_EPSILON)
        case "loss":
            return relative_loss(seen.loss, state["first loss"])[..., None]
        case "loss change":
            return relative_change(seen.loss, state["mean loss"])[..., None]
        case "metric":
            return seen.cost[..., None]
        case "metric change":
            return relative_change(seen.cost, state["mean cost"])[..., None]
        case "gradient size":
            return gradient_size(seen.gradient)
    return torch.full_like(seen.phi[..., :1], time_left(seen.step, horizon))

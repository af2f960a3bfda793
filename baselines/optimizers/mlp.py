"""The MLP optimizer: 19 inputs of gradient, momenta, parameter and time.

Source: Metz et al., ICML 2019, "Understanding and correcting pathologies in the
training of learned optimizers", arXiv 1810.10180.
"""

from typing import Any

import torch
from torch import Tensor

from metricopt.errors import require_ranges
from metricopt.learned_optimizers.contract import (
    LEARNED,
    LearnedOptimizer,
    Seen,
    State,
)
from metricopt.learned_optimizers.features import normalised, running_mean
from metricopt.learned_optimizers.metricopt_mlp import two_hidden_layers
from metricopt.process.seeding import globally_seeded

DECAYS = (0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
TIMES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
EPSILON = 1e-5
HIDDEN = 32


@LEARNED.register("mlp")
class MLPOptimizer(LearnedOptimizer):
    """An MLP 19-32-32-2: phi <- phi - scale * u * exp(exponent * m).

    The outputs are the direction u and the log-magnitude m of every coordinate.

    Args:
        horizon: steps T that the optimizer is trained for.
        scale: length of a step where m is 0 and u is 1, positive.
        exponent: factor of m, at least 0.
        seed: seed of the first weights.

    Raises:
        ConfigError: if an argument is out of its range.

    Source: Metz et al., arXiv 1810.10180, as re-implemented by the authors' group,
    whose network has two hidden layers.
    """

    def __init__(
        self,
        horizon: int,
        *,
        scale: float = 1e-3,
        exponent: float = 1e-3,
        seed: int = 0,
    ) -> None:
        super().__init__(horizon)
        given = {"scale": scale, "exponent": exponent}
        require_ranges("MLPOptimizer", given, scale="> 0", exponent=">= 0")
        self.scale, self.exponent = scale, exponent
        with globally_seeded(seed):
            self.network = two_hidden_layers(len(self.inputs), HIDDEN)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Gradient, phi, a mean gradient for each decay, and times."""
        means = (f"mean gradient {decay}" for decay in DECAYS)
        return ("gradient", "phi", *means, *(f"time {time}" for time in TIMES))

    def settings(self) -> dict[str, Any]:
        """Return the arguments of an optimizer of the same form."""
        return {
            "horizon": self.horizon,
            "scale": self.scale,
            "exponent": self.exponent,
        }

    def start(self, phi: Tensor) -> State:
        """Return running means of 0."""
        zero = torch.zeros_like(phi)
        return {f"mean gradient {decay}": zero for decay in DECAYS}

    def _move(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        means = {
            f"mean gradient {decay}": running_mean(
                state[f"mean gradient {decay}"], seen.gradient, decay
            )
            for decay in DECAYS
        }
        columns = [seen.gradient, seen.phi, *means.values()]
        scaled = torch.stack([normalised(each, EPSILON) for each in columns], dim=-1)
        times = time_features(seen.step).to(scaled).expand(*seen.phi.shape, -1)
        output = self.network(torch.cat([scaled, times], dim=-1))
        direction, magnitude = output.unbind(-1)
        return -self.scale * direction * (self.exponent * magnitude).exp(), means


def time_features(step: int) -> Tensor:
    """Return tanh(t / x - 1) for x of 1, 3, 10, ... 100,000; shape [11]."""
    return torch.tanh(step / torch.tensor(TIMES, dtype=torch.float64) - 1)

"""The LSTM optimizer: a coordinate-wise recurrent network that sees the gradient.

Source: Andrychowicz et al., NeurIPS 2016, "Learning to learn by gradient descent by
gradient descent".
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt.errors import require_ranges
from metricopt.learned_optimizers.contract import (
    LEARNED,
    LearnedOptimizer,
    Seen,
    State,
)
from metricopt.learned_optimizers.objective import Objective
from metricopt.learned_optimizers.settings import OptimizerTraining
from metricopt.process.seeding import globally_seeded

UNITS = 20
HORIZON = 100
"""Steps of an episode in the paper."""


@LEARNED.register("lstm")
class LSTMOptimizer(LearnedOptimizer):
    """A two-layer LSTM with 20 units each and a linear head: phi <- phi + scale * head.

    Coordinates share the weights; each has a state of its own.

    Args:
        horizon: steps T that the optimizer is trained for.
        p: log-gradients are divided by it; those below -p are taken as they are.
        scale: factor of the head.
        seed: seed of the first weights.

    Raises:
        ConfigError: if an argument is out of its range.

    Source: Andrychowicz et al., NeurIPS 2016, Sec. 2.1 and appendix A. Differs: the
    scale is that of the released code, whose p is 5.
    """

    def __init__(
        self,
        horizon: int = HORIZON,
        *,
        p: float = 10.0,
        scale: float = 0.01,
        seed: int = 0,
    ) -> None:
        super().__init__(horizon)
        given = {"p": p, "scale": scale}
        require_ranges("LSTMOptimizer", given, p="> 0", scale="> 0")
        self.p, self.scale = p, scale
        with globally_seeded(seed):
            self.first = nn.LSTMCell(2, UNITS)
            self.second = nn.LSTMCell(UNITS, UNITS)
            self.head = nn.Linear(UNITS, 1)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Logarithm and sign of the gradient."""
        return ("log gradient", "sign or gradient")

    def settings(self) -> dict[str, Any]:
        """Return the arguments of an optimizer of the same form."""
        return {"horizon": self.horizon, "p": self.p, "scale": self.scale}

    def start(self, phi: Tensor) -> State:
        """Return a state of 0 for every coordinate."""
        zero = phi.new_zeros(*phi.shape, UNITS)
        return dict.fromkeys(("h1", "c1", "h2", "c2"), zero)

    def _move(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        inputs = log_and_sign(seen.gradient, self.p)
        h1, c1 = _stepped(self.first, inputs, state["h1"], state["c1"])
        h2, c2 = _stepped(self.second, h1, state["h2"], state["c2"])
        after = {"h1": h1, "c1": c1, "h2": h2, "c2": c2}
        return self.scale * self.head(h2).squeeze(-1), after


def _stepped(
    cell: nn.LSTMCell, inputs: Tensor, hidden: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """Return hidden state and memory [..., 20] after a step.

    It is what the cell itself computes, which `torch.func.vmap` cannot map.
    """
    gates = functional.linear(inputs, cell.weight_ih, cell.bias_ih)
    gates = gates + functional.linear(hidden, cell.weight_hh, cell.bias_hh)
    i, f, g, o = gates.chunk(4, dim=-1)
    memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
    return o.sigmoid() * memory.tanh(), memory


def log_and_sign(gradient: Tensor, p: float) -> Tensor:
    """Return two inputs for every coordinate of a gradient [..., d], [..., d, 2].

    (log|g| / p, sign g) where |g| >= exp(-p), and (-1, exp(p) g) elsewhere.

    Source: Andrychowicz et al., NeurIPS 2016, appendix A.
    """
    least = math.exp(-p)
    size = gradient.abs()
    large = size >= least
    log = size.clamp_min(least).log() / p
    first = torch.where(large, log, torch.full_like(log, -1.0))
    second = torch.where(large, gradient.sign(), gradient / least)
    return torch.stack([first, second], dim=-1)


def published_training(iterations: int = 10_000) -> OptimizerTraining:
    """Return the training of the paper: cut back-propagation on the sum of losses.

    Source: Andrychowicz et al., NeurIPS 2016, Sec. 3, with the settings of the released
    code. Differs: every episode is as long as the horizon from the start on; meta-
    gradients are clipped.
    """
    return OptimizerTraining(
        iterations=iterations,
        tasks=1,
        estimator="through-steps",
        deviation=0.0,
        window=20,
        order="first",
        objective=Objective(metric_weight=0.0, loss_term="sum"),
        rate=1e-3,
        lengthening=0.0,
        validate_every=1_000,
    )

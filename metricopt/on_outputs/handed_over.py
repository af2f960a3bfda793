"""CMA-ES where the statistics do not explain the metric, from the best phi so far."""

import torch
from torch import Tensor

from metricopt.methods.evolution import evolution_strategy

DEVIATION = 0.3
"""Standard deviation of the first candidates."""


class HandedOver:
    """CMA-ES asked for one candidate at a time.

    Args:
        start: phi, shape [d].
        root: square root of the covariance it starts with, shape [d, d].
        seed: seed of all randomness.
    """

    def __init__(self, start: Tensor, root: Tensor, seed: int) -> None:
        self._start, self._root = start, root
        self._strategy = evolution_strategy(len(start), DEVIATION, seed)
        self._asked = list(self._strategy.ask())
        self._costs: list[float] = []

    def ask(self) -> Tensor:
        """Return the next candidate [d]."""
        candidate = torch.tensor(self._asked[len(self._costs)], dtype=torch.float32)
        return self._start + candidate @ self._root.T

    def learn(self, costs: Tensor) -> None:
        """Take the cost [1] of the candidate that was asked for last."""
        self._costs += costs.tolist()
        if len(self._costs) == len(self._asked):
            self._strategy.tell(self._asked, self._costs)
            self._asked, self._costs = list(self._strategy.ask()), []

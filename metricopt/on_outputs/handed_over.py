"""The hand-over to CMA-ES, where no statistics explain the metric."""

import numpy as np
import torch
from torch import Tensor

from metricopt.methods.evolution import evolution_strategy

DEVIATION = 0.3
"""Standard deviation of the first candidates."""


class HandedOver:
    """CMA-ES asked for one candidate at a time, from the best phi [d] so far.

    Some others, [n, d], are asked for before it. The root [d, d] is that of the
    covariance it starts with. Searches in lock-step share a stream.
    """

    def __init__(
        self, first: Tensor, root: Tensor, seed: int, stream: np.random.RandomState
    ) -> None:
        self._first, self._root = list(first.unbind()), root
        self._start: Tensor | None = None
        self._strategy = evolution_strategy(len(root), DEVIATION, seed, stream)
        self._asked = list(self._strategy.ask())
        self._costs: list[float] = []

    def ask(self, best: Tensor) -> Tensor:
        """Return the next candidate [d], where `best` [d] is the best so far."""
        if self._first:
            return self._first[0]
        if self._start is None:
            self._start = best
        candidate = torch.tensor(self._asked[len(self._costs)], dtype=torch.float32)
        return self._start + candidate @ self._root.T

    def learn(self, costs: Tensor) -> None:
        """Take the cost [1] of the candidate that was asked for last."""
        if self._first:
            del self._first[0]
            return
        self._costs += costs.tolist()
        if len(self._costs) == len(self._asked):
            self._strategy.tell(self._asked, self._costs)
            self._asked, self._costs = list(self._strategy.ask()), []

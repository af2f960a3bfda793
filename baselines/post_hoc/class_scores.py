"""Class scores of any outputs, and searches over what is added to them."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from baselines.validation import Validation
from metricopt.errors import ShapeError
from metricopt.reading.outputs import class_logits

LOGITS = 2**24
"""Most logits in one call of the metric, which bounds its memory."""


def log_probabilities(outputs: Tensor) -> Tensor:
    """Return the log-probabilities of all classes, a single logit counting as two.

    Args:
        outputs: logits, shape [..., N, C]; C = 1 is one logit of the positive class.

    Returns:
        Log-probabilities, shape [..., N, max(C, 2)].

    Raises:
        ShapeError: if outputs have no class axis.
    """
    if outputs.ndim < 2:
        raise ShapeError(
            f"class scores need outputs [N, C], got shape {list(outputs.shape)}"
        )
    return class_logits(outputs).log_softmax(-1)


class Improvement(NamedTuple):
    """The first offsets with a new best value, and the queries made until then.

    Attributes:
        queries: metric queries made so far.
        value: the metric there, in native units, on the examples it was tuned on.
        offsets: numbers added to the log-probabilities, shape [C], on the device and of
            the type of the outputs.
    """

    queries: int
    value: float
    offsets: Tensor

    def shift(self, outputs: Tensor) -> Tensor:
        """Return the outputs to be judged, of logits [..., N, C]."""
        return log_probabilities(outputs) + self.offsets


class OffsetQueries:
    """Queries of class offsets, within a limit, with every improvement noted.

    Zero offsets are the first query. The last improvement within q queries is what a
    search limited to q queries finds.

    Args:
        log_probs: log-probabilities on the observe split, shape [N, C].
        validation: the metric.
        limit: most queries; None for no limit.

    Attributes:
        made: queries so far.
        trace: every improvement in order, zero offsets first.
    """

    def __init__(
        self, log_probs: Tensor, validation: Validation, limit: int | None
    ) -> None:
        self._log_probs = log_probs
        self._validation = validation
        self._limit = limit
        self._cost = math.inf
        self.made = 0
        self.trace: list[Improvement] = []
        self.costs(torch.zeros_like(log_probs[:1]))

    @property
    def best(self) -> Improvement:
        """The latest improvement."""
        return self.trace[-1]

    @property
    def cost(self) -> float:
        """Cost of the latest improvement."""
        return self._cost

    @property
    def remaining(self) -> float:
        """Queries that are left; infinite without a limit."""
        return math.inf if self._limit is None else self._limit - self.made

    def costs(self, candidates: Tensor) -> Tensor:
        """Query offsets [R, C], only the first ones where the limit is near.

        Returns:
            Costs of those that were queried, float64, shape [R] or shorter.
        """
        allowed = candidates[: int(min(self.remaining, len(candidates)))]
        parts = allowed.split(max(1, LOGITS // self._log_probs.numel()))
        found = [self._query(part) for part in parts if len(part)]
        return torch.cat(found) if found else torch.empty(0, dtype=torch.float64)

    def costs_on(self, places: Tensor, candidates: Tensor) -> Tensor:
        """Query offsets [R, C] on some examples; they are no candidates for the result.

        Args:
            places: places of n examples in the observe split, shape [n].
            candidates: numbers added to the log-probabilities, shape [R, C].

        Returns:
            Costs, float64, shape [R].
        """
        shifted = self._log_probs[places] + candidates[:, None]
        values = self._validation.values_on(places, shifted)
        self.made += len(candidates)
        return self._validation.as_costs(values)

    def _query(self, candidates: Tensor) -> Tensor:
        values = self._validation.values(self._log_probs + candidates[:, None])
        costs = self._validation.as_costs(values)
        for row, cost, value in zip(
            candidates, costs.tolist(), values.tolist(), strict=True
        ):
            self.made += 1
            if cost < self._cost:
                self._cost = cost
                self.trace.append(Improvement(self.made, value, row.clone()))
        return costs

"""The contract every method works against: losses and metric queries, batched over phi.

A task holds the train split (for gradients) and the observe split (for metric queries).
It has no access to the test split; only whoever judges the method does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from metricopt.errors import BudgetExceededError, DivergedError, ShapeError


class Task(ABC):
    """A frozen network theta with adapter phi, a loss and a black-box metric.

    Attributes:
        size: number d of adapter parameters.
        queries: metric queries made so far.
        loss_evaluations: mini-batch losses evaluated so far, one per row.
        query_limit: queries after which `observe` refuses; None for no limit.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.queries = 0
        self.loss_evaluations = 0
        self.query_limit: int | None = None

    def losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of each row of phi on a mini-batch of its own.

        Args:
            phi: adapter parameters, shape [B, d].
            generator: source of the mini-batches.

        Returns:
            Losses, shape [B], differentiable in phi.

        Raises:
            ShapeError: if phi is not [B, d].
            DivergedError: if a loss is not finite.
        """
        self._check(phi)
        losses = self._losses(phi, generator)
        if not bool(torch.isfinite(losses).all()):
            bad = int((~torch.isfinite(losses)).nonzero()[0])
            raise DivergedError(
                f"the loss of row {bad} is {losses[bad].item()} at "
                f"|phi| = {phi[bad].detach().norm().item():.3g}"
            )
        self.loss_evaluations += len(phi)
        return losses

    def observe(self, phi: Tensor) -> Tensor:
        """Query the metric on the observe split, once per row of phi.

        Args:
            phi: adapter parameters, shape [B, d].

        Returns:
            Costs, shape [B], float64, lower is better, in [0, 1].

        Raises:
            ShapeError: if phi is not [B, d].
            MetricError: if the metric fails; the message names it and the value.
            BudgetExceededError: if the queries would exceed `query_limit`.
        """
        return self._query(phi, self._observe)

    def observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        """Query the metric on a fresh random part of the train split.

        The part is as large as the observe split and the same for all rows. Fresh
        examples cannot be over-fitted; the paper's Fig. S4 asks what they cost.

        Args:
            phi: adapter parameters, shape [B, d].
            generator: draws the part.

        Returns:
            Costs, shape [B], float64, lower is better, in [0, 1].

        Raises:
            ShapeError, MetricError, BudgetExceededError: as in `observe`.
        """
        return self._query(phi, lambda rows: self._observe_train(rows, generator))

    def _query(self, phi: Tensor, query: Callable[[Tensor], Tensor]) -> Tensor:
        self._check(phi)
        if self.query_limit is not None and self.queries + len(phi) > self.query_limit:
            raise BudgetExceededError(
                f"{len(phi)} more metric queries after {self.queries} exceed the "
                f"limit of {self.query_limit}"
            )
        with torch.no_grad():
            costs = query(phi.detach())
        self.queries += len(phi)
        return costs

    def _check(self, phi: Tensor) -> None:
        if phi.ndim != 2 or phi.shape[1] != self.size:
            raise ShapeError(
                f"phi must have shape [B, {self.size}], got {tuple(phi.shape)}"
            )

    @abstractmethod
    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor: ...

    @abstractmethod
    def _observe(self, phi: Tensor) -> Tensor: ...

    @abstractmethod
    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor: ...

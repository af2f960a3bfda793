"""The gradient of eq. (7) in the weights of an optimizer, window by window."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.estimators import (
    evolution_strategies,
    merge,
    reparameterised,
    sample_variance,
)
from metricopt.learned_optimizers.features import running_mean
from metricopt.learned_optimizers.inner_tasks import InnerTasks
from metricopt.learned_optimizers.settings import OptimizerTraining
from metricopt.learned_optimizers.unroll import NEVER, Unroll


class MetaGradient:
    """Estimates meta-gradients from runs on a batch of tasks.

    Args:
        optimizer: the optimizer that is trained.
        settings: estimator, smoothing and objective.

    Attributes:
        share: weight of back-propagation in the last merged estimate, averaged over
            the optimizer's weights.
        loss: mean objective of the last window.
    """

    def __init__(
        self, optimizer: LearnedOptimizer, settings: OptimizerTraining
    ) -> None:
        self._optimizer, self._settings = optimizer, settings
        self._variances: tuple[Tensor, Tensor] | None = None
        self.share, self.loss = 0.0, 0.0

    def begin(self, tasks: InnerTasks, length: int, generator: torch.Generator) -> None:
        """Start runs of a given length on tasks; the generator makes the noise."""
        settings = self._settings
        self._length, self._generator = length, generator
        self._runs = Unroll(
            self._optimizer,
            tasks,
            copies=settings.copies,
            derivatives="none" if self._values_only else settings.order,
            supervised=settings.objective.metric_weight > 0,
        )
        self._batch = self._runs.phi.shape[1]
        self._total: Tensor | None = None

    @property
    def frozen(self) -> int:
        """Runs of the batch that were stopped."""
        return int((self._runs.frozen_at != NEVER).sum())

    @property
    def hopeless(self) -> int:
        """Runs of the batch whose loss or gradient is not finite at phi_0."""
        return int((self._runs.frozen_at == 0).sum())

    def window(self, steps: int) -> Tensor:
        """Run some steps on, and return the meta-gradient of their objective [W]."""
        centre = parameters_to_vector(self._optimizer.parameters()).detach()
        noise = self._noise(centre)
        weights = centre + torch.cat([noise, -noise] if len(noise) else [noise])
        if not len(noise):
            weights = centre.expand(1, self._batch, -1)
        if not self._values_only:
            weights = weights.detach().clone().requires_grad_()
        values = self._values(steps, weights)
        self.loss = values.detach().mean().item()
        if self._values_only:
            return self._strategies(values).mean(0)
        (gradients,) = torch.autograd.grad(values.sum(), weights)
        if not len(noise):
            return gradients.flatten(0, 1).mean(0)
        draws = reparameterised(*gradients.chunk(2)).flatten(0, 1)
        if self._settings.estimator == "through-steps":
            return draws.mean(0)
        return self._merged(self._strategies(values.detach()), draws)

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs, between two batches."""
        return {"variances": self._variances}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        found = state["variances"]
        self._variances = None if found is None else (found[0], found[1])

    @property
    def _values_only(self) -> bool:
        return self._settings.estimator in ("strategies", "persistent")

    def _noise(self, centre: Tensor) -> Tensor:
        """Return the noise of a window, [P, B, W]; [0, B, W] without smoothing.

        A run keeps its noise, unless the estimator wants a new one.
        """
        settings = self._settings
        pairs = settings.pairs if settings.deviation else 0
        if self._total is not None and settings.estimator != "persistent":
            return self._total
        shape = (pairs, self._batch, len(centre))
        drawn = torch.randn(shape, generator=self._generator, dtype=centre.dtype)
        noise = settings.deviation * drawn.to(centre.device)
        self._total = noise if self._total is None else self._total + noise
        return noise

    def _values(self, steps: int, weights: Tensor) -> Tensor:
        """Return what the next steps of every run add to its objective, [C, B]."""
        found = self._runs.advance(steps, weights)
        terms = self._settings.objective.terms(found.losses, found.costs, self._length)
        return terms[-steps:].sum(0)

    def _strategies(self, values: Tensor) -> Tensor:
        """Return the estimates of all pairs, [P * B, W]."""
        assert self._total is not None
        plus, minus = values.chunk(2)
        estimates = evolution_strategies(
            plus, minus, self._total, self._settings.deviation
        )
        return estimates.flatten(0, 1)

    def _merged(self, strategies: Tensor, through_steps: Tensor) -> Tensor:
        """Return the merged estimate; variances are those of earlier iterations."""
        self.share = 0.0
        if not bool(through_steps.isfinite().all()):
            return strategies.mean(0)
        before = self._variances
        now = (sample_variance(strategies), sample_variance(through_steps))
        self._variances = now
        if before is None:
            return strategies.mean(0)
        self._variances = (
            running_mean(before[0], now[0]),
            running_mean(before[1], now[1]),
        )
        merged = merge(strategies.mean(0), through_steps.mean(0), before)
        self.share = merged.share.mean().item()
        return merged.gradient

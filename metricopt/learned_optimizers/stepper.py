"""A learned optimizer as a torch optimizer, which stands where SGD stood.

optimizer = LearnedStepper([phi], learned)
for _ in range(steps):
    optimizer.zero_grad()
    loss = loss_of(phi)
    loss.backward()
    optimizer.see(loss=loss)
    optimizer.step()
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, ShapeError, require_kind
from metricopt.learned_optimizers.contract import LearnedOptimizer, Seen

FROZEN, LOSS, COST, BEFORE = "frozen at", "seen loss", "seen cost", "phi before"
OWN = ("step", FROZEN, LOSS, COST, BEFORE)
"""What is kept of phi beside the state of the learned optimizer."""


class LearnedStepper(torch.optim.Optimizer):
    """Steps a single parameter phi, [d] or rows [R, d] that do not see each other.

    A run that takes more steps than the optimizer was trained for warns once. A row
    whose loss, gradient or step is not finite goes back to its last phi where
    all were, and stays there.

    Args:
        params: phi alone.
        learned: the optimizer; its weights are not changed.

    Raises:
        ConfigError: if there is more than one parameter, or no learned optimizer, or
            one of another precision.
        ShapeError: if phi is neither [d] nor [R, d].
    """

    def __init__(self, params: Iterable[Any], learned: LearnedOptimizer) -> None:
        require_kind("learned", learned, LearnedOptimizer, "a LearnedOptimizer")
        super().__init__(params, {})
        found = [each for group in self.param_groups for each in group["params"]]
        if len(found) != 1:
            raise ConfigError(
                "LearnedStepper steps phi alone, got an optimizer over "
                f"{len(found)} parameters"
            )
        self.phi: Tensor = found[0]
        if self.phi.ndim not in (1, 2):
            raise ShapeError(
                f"phi must have shape [d] or [R, d], got {tuple(self.phi.shape)}"
            )
        learned.check_precision(self.phi, "phi")
        self.learned, self._loss_shown = learned, False
        nan = torch.full_like(self.phi.detach()[..., 0], torch.nan)
        self.state[self.phi] = {
            "step": 0,
            FROZEN: nan,
            LOSS: nan,
            COST: nan,
            BEFORE: self.phi.detach().clone(),
            **learned.start(self.phi.detach()),
        }

    def over(self, phi: Tensor) -> "LearnedStepper":
        """Return the same optimizer before its first step, of another phi."""
        return LearnedStepper([phi], self.learned)

    @property
    def frozen_at(self) -> Tensor:
        """The step at which a row was stopped, NaN where none was; [] or [R]."""
        found: Tensor = self.state[self.phi][FROZEN]
        return found

    @property
    def wants_metric(self) -> bool:
        """Whether the next step is one that is shown a new value of the metric."""
        step: int = self.state[self.phi]["step"]
        return self.learned.observes(step)

    def see(
        self,
        *,
        loss: Tensor | float | None = None,
        metric: Tensor | float | None = None,
    ) -> None:
        """Show what the next step goes by, beside the gradient.

        Args:
            loss: of every row, [] for phi [d] or [R] for rows.
            metric: the same of the metric, lower is better, in [0, 1]. The last one
                seen holds until there is a new one; see `wants_metric`.

        Raises:
            ShapeError: if there is not one number for every row.
            DataError: if a metric is out of range.
        """
        for name, value in ((LOSS, loss), (COST, metric)):
            if value is None:
                continue
            shown = torch.as_tensor(value).detach().to(self.phi)
            if shown.shape != self.phi.shape[:-1]:
                raise ShapeError(
                    f"{name.removeprefix('seen ')} must have shape "
                    f"{list(self.phi.shape[:-1])}, one number for every row of phi, "
                    f"got {list(shown.shape)}"
                )
            if name == COST and ((shown < 0) | (shown > 1)).any():
                raise DataError(
                    "metric must be a cost in [0, 1], lower is better, got "
                    f"{shown.min().item():g} to {shown.max().item():g}"
                )
            self.state[self.phi][name] = shown
            self._loss_shown |= name == LOSS

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: Callable[[], Tensor] | None = None
    ) -> Tensor | None:
        """Move phi by one step; `phi.grad` holds the gradient of the loss.

        Args:
            closure: computes the loss and its gradient; None where they are there.

        Returns:
            The loss of the closure, None without one.

        Raises:
            ConfigError: if there is no gradient, or the optimizer goes by a loss or
                metric that it was not shown.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            if self.learned.sees_loss:
                self.see(loss=loss)
        if self.phi.grad is None:
            raise ConfigError("phi has no gradient: call loss.backward() before step()")
        self._check_shown()
        if self.state[self.phi]["step"] == self.learned.horizon:
            self.learned.warn_beyond(self.learned.horizon + 1)
        self._step(self.phi.grad)
        return loss

    def _step(self, gradient: Tensor) -> None:
        kept = self.state[self.phi]
        here = kept[FROZEN].isnan() & gradient.isfinite().all(-1)
        if self._loss_shown:
            here &= kept[LOSS].isfinite()
        state = {name: value for name, value in kept.items() if name not in OWN}
        seen = Seen(self.phi.detach(), gradient, kept[LOSS], kept[COST], kept["step"])
        move, after = self.learned(seen, state)
        good = here & move.isfinite().all(-1)
        # Where the loss is not finite, the last phi where it was is the one before.
        last = torch.where(here[..., None], self.phi, kept[BEFORE])
        stopped = kept[FROZEN].isnan() & ~good
        kept[FROZEN] = kept[FROZEN].masked_fill(stopped, kept["step"])
        kept[BEFORE] = last
        self.phi.copy_(torch.where(good[..., None], self.phi + move, last))
        kept.update(after)
        kept["step"] += 1
        self._loss_shown = False

    def _check_shown(self) -> None:
        learned, cost = self.learned, self.state[self.phi][COST]
        without_metric = learned.sees_metric and bool(cost.isnan().any())
        if without_metric or (learned.sees_loss and not self._loss_shown):
            name = "metric" if without_metric else "loss"
            raise ConfigError(
                f"{type(learned).__name__} goes by the {name}: call "
                f"see({name}=...) before step()"
            )

"""Self-paced learning: easy examples first.

An example is trained on while its loss is below a threshold, which rises until all of
them are in.

Source: Kumar, Packer and Koller, NeurIPS 2010. For deep networks the comparisons that
quote it give no details, so these are ours: the share of examples that are in rises in
a straight line from a half to all over the first half of the training. Their losses are
compared within the mini-batch, or, as in the source, with one threshold for all: the
quantile of the losses of the epoch before.
"""

import copy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from baselines.learned_losses.example_weights import cross_entropies
from baselines.losses.cross_entropy import cross_entropy
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.loop import Hooks
from metricopt.errors import require_choice, require_ranges

Form = Literal["mini-batch", "global"]


@NETWORK_METHODS.register("self-paced")
@dataclass(frozen=True, kw_only=True)
class SelfPaced(NetworkMethod):
    """Train with cross-entropy on the examples of smallest loss, at last on all.

    The metric is never queried; the epoch of lowest cross-entropy on the observe split
    is kept.

    Attributes:
        form: where the threshold comes from: the losses of the "mini-batch", or
            "global", those of the whole epoch before; in the first epoch there are
            none, and it comes from the mini-batch.
        start: share of the examples that are in at first, in (0, 1].
        until: share of the training after which all are in, in [0, 1].
    """

    form: Form = "mini-batch"
    start: float = 0.5
    until: float = 0.5

    def __post_init__(self) -> None:
        require_choice("form", self.form, Form)
        require_ranges(
            "self-paced learning", vars(self), start="in (0, 1]", until="in [0, 1]"
        )

    def share(self, step: int, steps: int) -> float:
        """Return the share of the examples that are in, in (0, 1].

        Args:
            step: steps taken so far.
            steps: steps of the whole training.
        """
        rising = self.until * steps
        done = 1.0 if step >= rising else step / rising
        return self.start + (1 - self.start) * done

    def _train(self, given: Assignment) -> NetworkResult:
        network = copy.deepcopy(given.network)
        pace = _Pace(self, given.batches.steps_per_epoch)
        run = given.run(network, pace.loss, given.loss_score(cross_entropy))
        best = given.finish(run, pace)
        taken = {"examples_in": pace.taken / max(1, pace.offered)}
        return given.result(network, run.steps, best.noted("observe_loss") | taken)


class _Pace(Hooks):
    """Which examples are in, step by step.

    Attributes:
        taken: examples that were trained on so far.
        offered: examples of all mini-batches so far.
    """

    def __init__(self, settings: SelfPaced, steps_per_epoch: int) -> None:
        super().__init__(settings.on_epoch)
        self.settings, self.steps_per_epoch = settings, steps_per_epoch
        self.taken = self.offered = 0
        self._share = 1.0
        self._seen: list[Tensor] = []
        self._before: Tensor | None = None

    def state(self) -> dict[str, Any]:
        """Return what was taken so far, and the losses of the last two epochs."""
        names = ("taken", "offered", "_seen", "_before")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        vars(self).update(state)

    def before_step(self, step: int, steps: int) -> None:
        """Widen the share, and take the losses of an epoch that is over."""
        self._share = self.settings.share(step, steps)
        if self._seen and step % self.steps_per_epoch == 0:
            self._before, self._seen = torch.cat(self._seen).sort().values, []

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy of the examples that are in, at least one."""
        losses = cross_entropies(outputs, targets)
        known = losses.detach()
        self.offered += len(known)
        if self._share >= 1:
            self.taken += len(known)
            return losses.mean()
        if self.settings.form == "global":
            self._seen.append(known)
        order = known.sort().values if self._before is None else self._before
        inside = known <= _quantile(order.to(known), self._share)
        # A mini-batch of hard examples still teaches its easiest one.
        inside |= known <= known.min()
        self.taken += int(inside.sum())
        return losses[inside].mean()


def _quantile(order: Tensor, share: float) -> Tensor:
    """Return the value that a share of sorted values does not exceed."""
    return order[max(0, round(share * len(order)) - 1)]

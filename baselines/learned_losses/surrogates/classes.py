"""The surrogate of logits of classes, and groups with labels made for them."""

from typing import Any

import torch
from torch import Tensor

from baselines.learned_losses.class_correlation import log_probabilities
from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    ProbabilitySurrogate,
    SurrogateKind,
)
from baselines.losses.cross_entropy import cross_entropy
from metricopt.errors import ShapeError

CURVE_POINTS, CURVE_DIGITS = 101, 6
"""Probabilities of the true class at which the learned loss is noted."""


class ClassSurrogate(ProbabilitySurrogate):
    """A loss of the probability p of the true class; see `ProbabilitySurrogate`.

    The absolute value can make it rise again: where recorded networks are seldom sure,
    it is least at the p that right answers usually have.
    """

    probabilities = 1

    def right(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the probability of the true class, shape [..., n, 1].

        Args:
            outputs: class logits [..., n, C] or one logit [..., n, 1].
            targets: labels, shape [..., n].
        """
        log_p = log_probabilities(outputs)
        return log_p.gather(-1, targets.long()[..., None]).exp()

    def noted(self) -> dict[str, list[float]]:
        """Return the loss of an example at probabilities p = 0, .01, ... 1."""
        p = torch.linspace(0, 1, CURVE_POINTS).to(self.scale)
        with torch.no_grad():
            losses = self.of_right(p[:, None, None]).tolist()
        return {"surrogate_curve": [float(f"{x:.{CURVE_DIGITS}g}") for x in losses]}


@KINDS.register("classes")
class Classes(SurrogateKind):
    """Logits of classes; groups to learn from have labels that are made for them."""

    loss = staticmethod(cross_entropy)
    base = "cross_entropy"
    shape = "[C]"
    dtype = torch.float32

    def check(self, outputs: Any, targets: Any) -> None:
        """Check that outputs are [N, C]."""
        if not isinstance(outputs, Tensor) or outputs.ndim != 2:
            got = list(outputs.shape) if isinstance(outputs, Tensor) else "a tuple"
            raise ShapeError(f"a surrogate of classes needs outputs [N, C], got {got}")

    def make(self, recorded: Groups, *, anchored: bool) -> ClassSurrogate:
        """Return a surrogate with random weights, for any number of classes."""
        return ClassSurrogate(anchored=anchored)

    def base_losses(self, groups: Groups) -> Tensor:
        """Return the cross-entropy of every group."""
        return group_cross_entropy(groups)

    def groups(
        self, recorded: Groups, places: Tensor, size: int, generator: torch.Generator
    ) -> Groups:
        """Return groups of recorded logits with labels that are made for them."""
        logits = recorded.outputs[places.to(recorded.outputs.device)]
        return make_groups(logits, size, generator)


def make_groups(logits: Tensor, size: int, generator: torch.Generator) -> Groups:
    """Return groups of consecutive logits with new labels, from all right to chance.

    A label is the predicted class up to a uniform place in the group, and a uniform
    class behind it.

    Args:
        logits: shape [N, C], or [N, 1] for two classes; what exceeds a multiple of
            `size` is left out.
        size: examples n of a group.
        generator: source of the labels, on the CPU.
    """
    count = len(logits) // size
    outputs = logits[: count * size].unflatten(0, (count, size))
    log_p = log_probabilities(outputs)
    cuts = torch.randint(size + 1, (count, 1), generator=generator)
    others = torch.randint(log_p.shape[-1], (count, size), generator=generator)
    right = torch.arange(size) < cuts
    targets = log_p.argmax(-1).where(right.to(logits.device), others.to(logits.device))
    return Groups(outputs, targets)


def group_cross_entropy(groups: Groups) -> Tensor:
    """Return the cross-entropy of every group, shape [...], in nats."""
    log_p = log_probabilities(groups.outputs)
    return -log_p.gather(-1, groups.targets.long()[..., None])[..., 0].mean(-1)

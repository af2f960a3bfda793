"""The contract of a kind of surrogate: what ReLoss needs to know of a form of outputs.

A kind says which groups recorded outputs make, which loss the surrogate takes the place
of, and how the surrogate is built. How it learns and how a network is trained with it
is the same for all kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from metricopt.losses.contract import Loss
from metricopt.registry import Registry


class Groups(NamedTuple):
    """Groups of outputs [G, n, ...] with targets [G, n, ...]; or examples [N, ...]."""

    outputs: Tensor
    targets: Tensor


class Surrogate(nn.Module, ABC):
    """A loss that is learned.

    Args:
        anchored: whether the loss is kept from preferring worse outputs; ours.

    Attributes:
        scale: factor of the loss.
    """

    scale: Tensor

    def __init__(self, *, anchored: bool) -> None:
        super().__init__()
        self.anchored = anchored
        self.register_buffer("scale", torch.ones(()))

    @abstractmethod
    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group, shape [...], not negative.

        Args:
            outputs: shape [..., n, (one example)].
            targets: shape [..., n, (one example)].
        """

    def noted(self) -> dict[str, list[float]]:
        """Return what notes say of the loss that was learned; by default nothing."""
        return {}


class ProbabilitySurrogate(Surrogate):
    """A loss: the mean of |h(p)| over examples, p what should be 1 of each.

    h is q-128-128-128-1 with ELU. `anchored`, which is ours, is |h(p) - h(1)|, so that
    no p has a smaller loss than 1, where it is 0.

    Args:
        width: width of the hidden layers.
        anchored: see `Surrogate`.

    Attributes:
        probabilities: q, how many there are of one example.
    """

    probabilities: ClassVar[int]

    def __init__(self, width: int = 128, *, anchored: bool = False) -> None:
        super().__init__(anchored=anchored)
        self.h = nn.Sequential(
            nn.Linear(self.probabilities, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, 1),
        )

    @abstractmethod
    def right(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the probabilities of what is right, shape [..., n, q]."""

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group; see `Surrogate`."""
        return self.of_right(self.right(outputs, targets))

    def of_right(self, right: Tensor) -> Tensor:
        """Return the loss of groups with these probabilities of what is right.

        Args:
            right: shape [..., n, q].
        """
        values = self.h(right)
        if self.anchored:
            values = values - self.h(torch.ones_like(right[..., :1, :]))
        losses: Tensor = self.scale * values[..., 0].abs().mean(-1)
        return losses


class SurrogateKind(ABC):
    """What is particular to one form of outputs.

    Attributes:
        loss: the loss that the surrogate takes the place of; its training is recorded.
        base: what notes call it.
        shape: the outputs of one example, in words.
        dtype: type that outputs are recorded in.
    """

    loss: ClassVar[Callable[[Tensor, Tensor], Tensor]]
    base: ClassVar[str] = "base"
    shape: ClassVar[str]
    dtype: ClassVar[torch.dtype] = torch.float16

    @abstractmethod
    def check(self, outputs: Any, targets: Any) -> None:
        """Check that outputs and targets are of this kind.

        Raises:
            ShapeError, DataError: if they are not.
        """

    @abstractmethod
    def make(self, recorded: Groups, *, anchored: bool) -> Surrogate:
        """Return a surrogate with random weights.

        Args:
            recorded: some recorded outputs with their targets.
            anchored: see `Surrogate`.
        """

    @abstractmethod
    def base_losses(self, groups: Groups) -> Tensor:
        """Return the loss of every group that the surrogate takes the place of."""

    def beside(self, surrogate: Surrogate) -> Loss:
        """Return what a network is trained with: by default the surrogate alone.

        A part of the usual loss may stay that the surrogate does not read.
        """
        return surrogate.forward

    def groups(
        self, recorded: Groups, places: Tensor, size: int, generator: torch.Generator
    ) -> Groups:
        """Return groups of recorded outputs with their targets.

        Half of the groups are of outputs that were recorded one soon after the other,
        so that some are of a network that has learned little, and some of one that has
        learned much. The others are of all times.

        Args:
            recorded: outputs in the order of time, with their targets.
            places: places drawn at random; what exceeds a multiple of `size` is left
                out.
            size: examples n of a group.
            generator: source of what else is random, on the CPU.
        """
        near = len(places) // size // 2 * size
        return gathered(
            recorded, torch.cat([places[:near].sort()[0], places[near:]]), size
        )


def gathered(recorded: Groups, places: Tensor, size: int) -> Groups:
    """Return groups of the outputs at some places, with their own targets.

    Args:
        recorded: outputs and targets, shape [N, ...].
        places: group by group; what exceeds a multiple of `size` is left out.
        size: examples n of a group.
    """
    shape = (len(places) // size, size)
    drawn = places[: shape[0] * size]
    outputs, targets = (part[drawn.to(part.device)] for part in recorded)
    return Groups(outputs.float().unflatten(0, shape), targets.unflatten(0, shape))


KINDS: Registry[type[SurrogateKind]] = Registry(
    "kind of surrogate", "baselines.learned_losses.surrogates"
)
"""Kinds of surrogates by the name of the outputs that they are for."""

"""The contract of an adapter: a frozen network theta modulated by a flat vector phi."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self

from torch import Tensor, nn

from metricopt.adapters.applied.changed import Change, put_in
from metricopt.adapters.blocks import PhiBlocks, quarters
from metricopt.errors import ShapeError
from metricopt.process.keeping import evaluating
from metricopt.reading.inputs import Inputs
from metricopt.reading.outputs import Outputs, Standard

Features = tuple[Tensor, ...]
"""Cached activations at the first site; the first axis of every tensor is N."""


class Adapter(ABC):
    """A frozen network with a small set of parameters phi, batched over phi.

    The network is put in evaluation mode and its weights are frozen. `phi = 0` is
    exactly the pre-trained network.

    Attributes:
        size: number d of adapter parameters.
        standard: where predicted values are scaled about, and the unit of their
            offsets; None if they are scaled about 0, and offsets have the units of
            outputs.
    """

    size: int
    standard: Standard | None = None

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the parts an adapter is made of, by name."""
        return {"adapter": slice(self.size)}

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of what belongs together: a block for every layer.

        Four blocks where phi modulates one layer, or all of them by a generator.
        """
        return quarters(self.size)

    @abstractmethod
    def encode(self, inputs: Inputs) -> Features:
        """Run the network up to the first adapter site and return the features.

        Args:
            inputs: network inputs, each [N, ...].

        Returns:
            Features of the N examples; the inputs themselves if the network cannot
            be cut.
        """

    @abstractmethod
    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples.

        Args:
            features: what `encode` returned for N examples.
            phi: adapter parameters, shape [B, d].

        Returns:
            Network outputs, shape [B, N, C], differentiable in phi; a tuple of tensors
            [B, N, ...] where the network returns one of tensors [N, ...].

        Raises:
            ShapeError: if phi is not [B, d]; the message names both shapes.
        """

    @abstractmethod
    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `predict`.

        From features of B * n examples, the n of phi[0] first, and phi [B, d] to [B, n,
        C].

        Raises:
            ShapeError: if phi is not [B, d] or B does not divide the examples.
        """


class NetworkAdapter(Adapter):
    """An adapter of a network that a user has in hands.

    Attributes:
        network: the network theta, frozen and put in evaluation mode.
        size: number d of adapter parameters.
    """

    def __init__(self, network: nn.Module, size: int) -> None:
        evaluating(network)
        self.network = network.requires_grad_(False)
        self.size = size
        self._attached: Tensor | None = None
        self._undo = ExitStack()

    @property
    def attached(self) -> Tensor | None:
        """The phi that the network is modulated by, or None."""
        return self._attached

    def attach(self, phi: Tensor) -> Self:
        """Modulate the network by one phi in evaluation mode, until `detach`.

        The network may be called, called by `forward`, compiled before or now, copied,
        or be a part of another one. Later in-place changes of phi take effect, and
        gradients reach phi, so an optimizer may step it. As a context manager,
        `with adapter.attach(phi): ...` detaches at the end.

        Args:
            phi: adapter parameters, shape [d].

        Raises:
            ShapeError: if phi is not [d].
            ConfigError: if another adapter modulates the network.
        """
        if tuple(phi.shape) != (self.size,):
            raise ShapeError(
                f"phi must have shape [{self.size}], got {tuple(phi.shape)}"
            )
        self.detach()
        self._undo.callback(put_in(self.network, self.changes(phi)))
        self._undo.callback(_train, evaluating(self.network))
        self._attached = phi
        return self

    def detach(self) -> None:
        """Restore the network and its mode; does nothing if it is not modulated."""
        self._undo.close()
        self._attached = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.detach()

    @abstractmethod
    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return modules of the network, and what phi [d] does to their outputs."""

    @abstractmethod
    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network with phi [d] in it, in evaluation mode."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""

    def detached(self) -> ExitStack:
        """Use the plain network in evaluation mode inside the context."""
        stack = ExitStack()
        if self._attached is not None:
            stack.callback(self.attach, self._attached)
            self.detach()
        stack.callback(_train, evaluating(self.network))
        return stack


def _train(modules: list[nn.Module]) -> None:
    for module in modules:
        module.training = True

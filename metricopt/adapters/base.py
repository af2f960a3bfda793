"""The contract of an adapter: a frozen network theta modulated by a flat vector phi."""

from abc import ABC, abstractmethod

from torch import Tensor

from metricopt.reading.inputs import Inputs
from metricopt.reading.outputs import Outputs

Features = tuple[Tensor, ...]
"""Cached activations at the first site; the first axis of every tensor is N."""


class Adapter(ABC):
    """A frozen network with a small set of parameters phi, batched over phi.

    The network is put in evaluation mode and its weights are frozen. `phi = 0` is
    exactly the pre-trained network.

    Attributes:
        size: number d of adapter parameters.
    """

    size: int

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the parts an adapter is made of, by name."""
        return {"adapter": slice(self.size)}

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
            Network outputs, shape [B, N, C], differentiable in phi; a tuple of such
            tensors where the network returns one.

        Raises:
            ShapeError: if phi is not [B, d]; the message names both shapes.
        """

    @abstractmethod
    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples.

        Args:
            features: features of B * n examples, the n of phi[0] first.
            phi: adapter parameters, shape [B, d].

        Returns:
            Network outputs, shape [B, n, C], differentiable in phi; a tuple of such
            tensors where the network returns one.

        Raises:
            ShapeError: if phi is not [B, d] or B does not divide the examples.
        """

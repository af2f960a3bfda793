"""Adapters of a whole network: they can be put into it, taken out and described."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from metricopt.adapters.base import Adapter
from metricopt.errors import ShapeError


class NetworkAdapter(Adapter):
    """An adapter of a network that a user has in hands.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        size: number d of adapter parameters.

    Attributes:
        network: the network theta, frozen and in evaluation mode.
        size: number d of adapter parameters.
    """

    def __init__(self, network: nn.Module, size: int) -> None:
        self.network = network.eval().requires_grad_(False)
        self.size = size
        self._attached: Tensor | None = None
        self._handles: list[RemovableHandle] = []

    def attach(self, phi: Tensor) -> Self:
        """Modulate the network by one phi, until `detach`.

        Later in-place changes of phi take effect, and gradients reach phi, so an
        optimizer may step it. As a context manager, `with adapter.attach(phi): ...`
        detaches at the end.

        Args:
            phi: adapter parameters, shape [d].

        Raises:
            ShapeError: if phi is not [d].
        """
        if tuple(phi.shape) != (self.size,):
            raise ShapeError(
                f"phi must have shape [{self.size}], got {tuple(phi.shape)}"
            )
        self.detach()
        self._handles = self.hooks(phi)
        self._attached = phi
        return self

    def detach(self) -> None:
        """Restore the network; does nothing if it is not modulated."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._attached = [], None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.detach()

    @abstractmethod
    def hooks(self, phi: Tensor) -> list[RemovableHandle]:
        """Put hooks into the network that modulate it by phi [d]."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""

    @contextmanager
    def _detached(self) -> Iterator[None]:
        """Detach phi inside the context, so that nothing is modulated twice."""
        phi = self._attached
        if phi is None:
            yield
            return
        self.detach()
        try:
            yield
        finally:
            self.attach(phi)

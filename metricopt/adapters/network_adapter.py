"""Adapters of a whole network: they can be put into it, taken out and described."""

from abc import abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

from torch import Tensor, nn

from metricopt.adapters.applied.changed import Change, put_in
from metricopt.adapters.base import Adapter
from metricopt.errors import ShapeError
from metricopt.process.keeping import evaluating


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
        evaluating(network)
        self.network = network.requires_grad_(False)
        self.size = size
        self._attached: Tensor | None = None
        self._undo: Callable[[], None] = _nothing
        self._training: list[nn.Module] = []

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
        self._undo = put_in(self.network, self.changes(phi))
        self._attached = phi
        self._training = evaluating(self.network)
        return self

    def detach(self) -> None:
        """Restore the network and its mode; does nothing if it is not modulated."""
        self._undo()
        _train(self._training)
        self._undo, self._training, self._attached = _nothing, [], None

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
    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return modules of the network, and what phi [d] does to their outputs."""

    @abstractmethod
    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network, in evaluation mode, that needs no adapter.

        Args:
            phi: adapter parameters that it behaves as modulated by, shape [d].
        """

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""

    def detached(self) -> "_Detached":
        """Use the plain network in evaluation mode inside the context."""
        return _Detached(self)


class _Detached:
    """An adapter whose phi is out of the network for a while.

    It is a class, because a generator would assign to exceptions that pass through,
    which some refuse.
    """

    def __init__(self, adapter: NetworkAdapter) -> None:
        self._adapter, self._phi = adapter, adapter.attached

    def __enter__(self) -> None:
        self._adapter.detach()
        self._training = evaluating(self._adapter.network)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _train(self._training)
        if self._phi is not None:
            self._adapter.attach(self._phi)


def _train(modules: list[nn.Module]) -> None:
    for module in modules:
        module.training = True


def _nothing() -> None:
    return None

"""Problems whose networks are each trained by a method of choice."""

from typing import Protocol, Self, runtime_checkable


@runtime_checkable
class ByMethod(Protocol):
    """A problem on which every network method trains a network of its own."""

    def by(self, method: str) -> Self:
        """Return the same problem with the network that a method trains."""

    @property
    def trained_by(self) -> str:
        """The registered method that trains the network, or the loss alone."""

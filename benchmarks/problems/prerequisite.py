"""What is made before any run: the contract that pre-trained networks fulfil."""

from abc import ABC, abstractmethod


class Prerequisite(ABC):
    """Something that is made before any run, with all cores: a pre-trained network.

    Attributes:
        name: readable.
        digest: identity.
    """

    name: str
    digest: str

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it is available: made on this machine, or released."""

    @property
    @abstractmethod
    def is_made(self) -> bool:
        """Whether it was made on this machine."""

    @abstractmethod
    def make(self) -> None:
        """Make it if it is missing, with progress on the terminal.

        Raises:
            DivergedError: if it cannot be made.
        """

    @abstractmethod
    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""

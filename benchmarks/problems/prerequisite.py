"""What is made before any run, and what it takes: pre-trained networks."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.problems.pretrained.settings import FilmSettings

PASSES = 3
"""Work of a training step relative to the outputs: these, and gradients of both kinds.
"""


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

    @property
    def warm(self) -> "Sequence[Prerequisite]":
        """The one that this one goes on from; empty if it begins by itself."""
        return []

    @abstractmethod
    def make(self, *, quiet: bool = False) -> None:
        """Make it if it is missing.

        Args:
            quiet: whether no progress is shown on the terminal.

        Raises:
            DivergedError: if it cannot be made.
        """

    @abstractmethod
    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""


@dataclass(frozen=True)
class ImageCost:
    """What one image costs.

    Attributes:
        operations: floating-point multiplications and additions of its outputs.
        feature_bytes: bytes that the adapter caches; 0 if the network is not cut.
        adapted: the part of the operations that depends on phi.
    """

    operations: float
    feature_bytes: int
    adapted: float


@dataclass(frozen=True)
class Forecast:
    """What the network of a pipeline takes.

    Attributes:
        network: identity of the network.
        operations: floating-point operations of its training.
        feature_bytes: bytes of the features of all images, on disk and in memory.
    """

    network: str
    operations: float
    feature_bytes: int


@contextmanager
def _counted() -> Iterator[FlopCounterMode]:
    """Count operations; those of a fused transformer layer would not be counted."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            yield counter
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def cost_of_image(
    network: nn.Module, image: Tensor, adapter: FilmSettings, *usual: str
) -> ImageCost:
    """Measure what one image costs.

    Args:
        network: with any weights.
        image: any one, shape [1, ...].
        adapter: adapter of the pipeline.
        usual: sites where the settings name none.
    """
    film = adapter.film(network, image, seed=0, usual=usual)
    with _counted() as whole:
        network(image)
    with _counted() as frozen:
        kept = film.encode(image) if film.is_cut else ()
    numbers = sum(part.numel() * part.element_size() for part in kept)
    operations = whole.get_total_flops()
    return ImageCost(operations, numbers, operations - frozen.get_total_flops())

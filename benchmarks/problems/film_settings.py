"""What decides the FiLM adapter of a pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from benchmarks.runs.codec import later
from metricopt.adapters.film import FiLM
from metricopt.process.seeding import Seeds


@dataclass(frozen=True)
class FilmSettings:
    """The adapter; see `metricopt.adapters.film.FiLM`.

    Attributes:
        form: kind of maps from phi to scales and shifts.
        sites: names of the modules it stands after; None for the usual ones.
        size: number d of parameters; None where the form decides it.
        offsets: whether output offsets stand beside it.
    """

    form: Literal["generator", "shared", "direct", "shift"] = "direct"
    sites: tuple[str, ...] | None = None
    size: int | None = None
    offsets: bool = later(False)

    def film(
        self, network: nn.Module, example: Tensor, *, seed: int, usual: Sequence[str]
    ) -> FiLM:
        """Return FiLM for a network.

        Args:
            network: frozen from now on.
            example: inputs of the network, [N, ...].
            seed: seed of the generator.
            usual: sites where the settings name none; empty for those of FiLM.
        """
        return FiLM(
            network,
            example,
            sites=self.sites or usual or None,
            form=self.form,
            size=self.size,
            seed=seed,
        )


def shared_seed(replicate: int) -> int:
    """Return the seed of the generator that all networks of a replicate share."""
    return Seeds("shared generator", replicate).seed("adapter")


DIRECT = FilmSettings()
"""A scale and a shift for every channel of the last normalisation layer."""

"""What decides the FiLM adapter of a pipeline."""

from dataclasses import dataclass
from typing import Literal

from benchmarks.runs.codec import later


@dataclass(frozen=True)
class FilmSettings:
    """The adapter; see `metricopt.adapters.film.FiLM`.

    Attributes:
        form: of FiLM.
        sites: of FiLM.
        size: of FiLM.
        offsets: whether output offsets stand beside it.
    """

    form: Literal["generator", "direct", "shift"] = "direct"
    sites: tuple[str, ...] | None = None
    size: int | None = None
    offsets: bool = later(False)


DIRECT = FilmSettings()
"""A scale and a shift for every channel of the last normalisation layer."""

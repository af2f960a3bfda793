"""Episodes of sine waves: regression from a few points of a wave.

Source: Finn et al., ICML 2017, Sec. 5.1; cbfinn/maml, data_generator.py.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.problems.episodes.contract import TEST_EPISODES, EpisodeSource
from metricopt.errors import require_counts
from metricopt.fewshot.episodes import Episodes
from metricopt.process.seeding import Seeds

AMPLITUDES, PHASES, INPUTS = (0.1, 5.0), (0.0, math.pi), (-5.0, 5.0)
"""Ranges that all waves are drawn from, uniformly."""


@dataclass(frozen=True, kw_only=True)
class SineSettings:
    """What decides the episodes of a replicate.

    Attributes:
        shots: support points of a wave.
        queries: query points of a wave.
        test_episodes: waves to test.

    Raises:
        ConfigError: if a number is no positive integer.
    """

    shots: int = 10
    queries: int = 10
    test_episodes: int = TEST_EPISODES

    def __post_init__(self) -> None:
        counts = ("shots", "queries", "test_episodes")
        require_counts("an episode", vars(self), *counts)


@dataclass(frozen=True)
class Wave:
    """amplitude * sin(input - phase)."""

    amplitude: float
    phase: float

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return its values at inputs of any shape."""
        return self.amplitude * torch.sin(inputs - self.phase)


class SineEpisodes(EpisodeSource):
    """Episodes of sine waves: inputs and targets are float32 [B, n, 1].

    Args:
        settings: what decides the episodes.
        replicate: draws all waves and points.
    """

    def __init__(self, settings: SineSettings, replicate: int) -> None:
        super().__init__(Seeds("episodes", "sine", replicate), settings.test_episodes)
        self.settings = settings

    @property
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""
        return {"variant": "sine", "digest": "drawn"}

    def wave(self, part: str, number: int) -> Wave:
        """Return the wave of an episode."""
        generator = self.seeds.generator(part, number, "wave")
        amplitude, phase = (
            float(_uniform(ends, 1, generator)) for ends in (AMPLITUDES, PHASES)
        )
        return Wave(amplitude, phase)

    def _episode(self, part: str, number: int) -> Episodes:
        shots, queries = self.settings.shots, self.settings.queries
        generator = self.seeds.generator(part, number, "points")
        inputs = _uniform(INPUTS, shots + queries, generator)[:, None]
        targets = self.wave(part, number)(inputs)
        support, query = slice(shots), slice(shots, None)
        return Episodes(
            inputs[support], targets[support], inputs[query], targets[query]
        )


def _uniform(
    ends: tuple[float, float], count: int, generator: torch.Generator
) -> Tensor:
    low, high = ends
    return low + (high - low) * torch.rand(count, generator=generator)

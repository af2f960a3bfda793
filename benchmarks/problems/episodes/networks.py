"""Networks that learn episodes, as settings."""

from dataclasses import dataclass

from torch import nn

from benchmarks.data.few_shot.contract import FEW_SHOT
from benchmarks.networks.conv4 import conv4
from benchmarks.networks.sine_mlp import sine_mlp
from benchmarks.problems.episodes.images import ImageSettings
from benchmarks.problems.episodes.sines import SineSettings
from metricopt.errors import require_counts


@dataclass(frozen=True, kw_only=True)
class Conv4Settings:
    """Four convolutions; see `benchmarks.networks.conv4`.

    Attributes:
        channels: of every convolution.
        shrink: images are averaged over squares of so many pixels a side.

    Raises:
        ConfigError: if a number is no positive integer.
    """

    channels: int = 64
    shrink: int = 1

    def __post_init__(self) -> None:
        require_counts("conv-4", vars(self), "channels", "shrink")

    @property
    def label(self) -> str:
        """Name in files."""
        return f"conv4-{self.channels}"

    def make(self, episodes: ImageSettings, seed: int) -> nn.Sequential:
        """Return the network for episodes, with random weights.

        Raises:
            ConfigError: if there is no such data set, or its images are too small.
        """
        images = FEW_SHOT.get(episodes.dataset)
        return conv4(
            channels=self.channels,
            inputs=1 if images.ink else 3,
            side=images.side,
            outputs=episodes.ways,
            shrink=self.shrink,
            seed=seed,
        )


@dataclass(frozen=True)
class SineMlp:
    """The MLP 1-40-40-1; see `benchmarks.networks.sine_mlp`."""

    @property
    def label(self) -> str:
        """Name in files."""
        return "mlp"

    def make(self, episodes: SineSettings, seed: int) -> nn.Sequential:
        """Return the network, with random weights."""
        return sine_mlp(seed=seed)

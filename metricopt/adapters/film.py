"""FiLM: phi scales and shifts the channels of feature maps."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from metricopt.adapters.blocks import PhiBlocks
from metricopt.adapters.site_adapter import SiteAdapter
from metricopt.adapters.sites import Modulation, Site, find_sites
from metricopt.errors import ConfigError, require_choice
from metricopt.process.seeding import make_generator
from metricopt.reading.inputs import Inputs

Form = Literal["generator", "shared", "direct", "shift"]

KINDS = ("scale", "shift")
DEFAULT_SIZE = 128
"""Size d of phi in the generator form, as in the paper."""


class FiLM(SiteAdapter):
    """Turns the output h of every site into `h * (1 + scale) + shift`, per channel.

    Form "generator": a fixed linear generator gives `scale = A phi` and `shift = B
    phi` at every site, with A and B frozen Gaussians of standard deviation
    `1 / sqrt(d)`. Form "shared" is the same with one generator for all networks: A and
    B belong to the place of a site, counted from the last one, and to the channel,
    instead of to the name of the site.

    Form "direct": phi holds the scales of all sites, in order, then the shifts,
    d = 2 * (sum of the channels). Form "shift": phi holds the shifts
    only; at linear and normalisation layers these are changes of their biases.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        example_input: network inputs, each [N, ...]; one example is enough.
        sites: names of the modules to modulate, in any order; "stages" for the last
            normalisation layer of every spatial resolution; by default the last one
            of the network, which leaves the least computation per phi. Sites that were
            found before are taken as they are.
        form: "generator", "shared", "direct" or "shift".
        size: number d of adapter parameters; by default 128 with a generator.
        seed: seed of A and B.

    Raises:
        ConfigError: if a site, the form or the size is not valid.

    Source: Huang et al., CVPR 2021, Figure S1 (b); Perez et al., AAAI 2018,
        Eq. (1). Differs: the generator is random and frozen.
    """

    def __init__(
        self,
        network: nn.Module,
        example_input: Inputs,
        *,
        sites: Sequence[str] | Sequence[Site] | Literal["stages"] | None = None,
        form: Form = "generator",
        size: int | None = None,
        seed: int = 0,
    ) -> None:
        found = _found(network, example_input, sites)
        channels = sum(site.channels for site in found)
        resolved = _size(form, size, channels)
        draw = GENERATORS.get(form)
        projection = None if draw is None else draw(found, resolved, seed)
        super().__init__(network, found, size=resolved, projection=projection)
        self.form = form
        self.seed = seed
        self._splits = [site.channels for site in found]
        self._settle(example_input)

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        seed = str(self.seed) if self.form in GENERATORS else "none"
        return super().describe() | {"form": self.form, "seed": seed}

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of the scales and shifts of every site; see `Adapter`."""
        if self.form in GENERATORS or len(self._splits) == 1:
            return super().blocks
        ends = [0, *accumulate(self._splits)]
        firsts = (0,) if self.form == "shift" else (0, ends[-1])
        return tuple(
            tuple(slice(first + start, first + end) for first in firsts)
            for start, end in pairwise(ends)
        )

    def _modulation(self, phi: Tensor) -> Modulation:
        if self.form == "shift":
            alone = torch.split(phi, self._splits, dim=1)
            return Modulation(len(phi), None, alone, self._channel_dims)
        scales, shifts = self._coefficients(phi).chunk(2, dim=1)
        return Modulation(
            len(phi),
            torch.split(1 + scales, self._splits, dim=1),
            torch.split(shifts, self._splits, dim=1),
            self._channel_dims,
        )


def _found(
    network: nn.Module,
    example_input: Inputs,
    sites: Sequence[str] | Sequence[Site] | Literal["stages"] | None,
) -> tuple[Site, ...]:
    known = tuple(site for site in sites or () if isinstance(site, Site))
    return known or find_sites(network, example_input, sites)  # type: ignore[arg-type]


def _size(form: str, size: int | None, channels: int) -> int:
    require_choice("form", form, Form)
    if form in GENERATORS:
        size = DEFAULT_SIZE if size is None else size
        if size < 1:
            raise ConfigError(f"size must be at least 1, got {size}")
        return size
    needed = channels if form == "shift" else 2 * channels
    if size not in (None, needed):
        each = "a shift" if form == "shift" else "a scale and a shift"
        raise ConfigError(
            f"size must be {needed} in the {form} form, {each} for each of {channels} "
            f"channels, got {size}"
        )
    return needed


def _generator(sites: Sequence[Site], size: int, seed: int) -> Tensor:
    """Return A and B of all sites side by side, shape [d, 2 * (sum of channels)].

    Every matrix has a seed of its own, so adding a site does not change the others.
    """
    blocks = [
        torch.randn(
            size,
            site.channels,
            generator=make_generator("FiLM", seed, site.name, kind),
            dtype=torch.float64,
        )
        for kind in KINDS
        for site in sites
    ]
    return torch.cat(blocks, dim=1) / math.sqrt(size)


def _shared_generator(sites: Sequence[Site], size: int, seed: int) -> Tensor:
    """Return the same, whose first channels are the same in a network with fewer."""
    blocks = [
        torch.randn(
            site.channels,
            size,
            generator=make_generator("shared FiLM", seed, place, kind),
            dtype=torch.float64,
        ).T
        for kind in KINDS
        for place, site in zip(range(len(sites) - 1, -1, -1), sites, strict=True)
    ]
    return torch.cat(blocks, dim=1) / math.sqrt(size)


GENERATORS = {"generator": _generator, "shared": _shared_generator}
"""What draws A and B, by form."""

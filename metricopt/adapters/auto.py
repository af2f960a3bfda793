"""The adapter a network gets when none is named."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.adapters.output_offsets import (
    OutputOffsets,
    columns,
    untouched_outputs,
)
from metricopt.adapters.site_adapter import SiteAdapter
from metricopt.errors import ConfigError
from metricopt.meaning.contract import PLAIN, Meaning
from metricopt.outputs import are_embeddings

DIRECT_LIMIT = 256
"""Largest phi for which `auto_adapter` takes FiLM's direct form; most offsets."""
BIAS_SIZE = 16
"""Size of phi in a network without convolutions, as in the paper."""


def auto_adapter(
    network: nn.Module,
    example_input: Tensor,
    *,
    size: int | None = None,
    sites: Sequence[str] | Literal["stages"] | None = None,
    seed: int = 0,
    offsets: bool | Meaning = True,
) -> NetworkAdapter:
    """Return the adapter that suits a network by default.

    A network with convolutions gets `FiLM`: the direct form if its scales and shifts
    are at most 256 numbers, else the generator form with d = 128. Any other network
    gets `DynamicBias` of size 16. `OutputOffsets` stand beside either, one for each
    output of a network that returns one tensor with at most 256 outputs, but not beside
    embeddings of unit length.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        example_input: network inputs, shape [N, ...]; one example is enough.
        size: size of `FiLM` or `DynamicBias`; for `FiLM`, giving it selects the
            generator form.
        sites: modules to modulate, as in `FiLM`; for `DynamicBias` a list of one name.
        seed: seed of the adapter's fixed random weights.
        offsets: whether output offsets are wanted; what outputs mean where they are
            no logits [N, C].

    Raises:
        ConfigError: if the network has no layer to modulate, or a site is unknown.
    """
    if any(isinstance(module, _ConvNd) for module in network.modules()):
        inner: SiteAdapter = _film(network, example_input, size, sites, seed)
    else:
        inner = _dynamic_bias(network, example_input, size, sites, seed)
    meaning = offsets if isinstance(offsets, Meaning) else PLAIN
    if not offsets or not 1 <= columns(inner, example_input, meaning) <= DIRECT_LIMIT:
        return inner
    outputs = untouched_outputs(inner, example_input)
    # Embeddings have no class that an offset could favour.
    if isinstance(outputs, Tensor) and are_embeddings(outputs):
        return inner
    return OutputOffsets(inner, example_input, meaning)


def _film(
    network: nn.Module,
    example_input: Tensor,
    size: int | None,
    sites: Sequence[str] | Literal["stages"] | None,
    seed: int,
) -> FiLM:
    if size is None:
        direct = FiLM(network, example_input, sites=sites, form="direct")
        if direct.size <= DIRECT_LIMIT:
            return direct
    return FiLM(network, example_input, sites=sites, size=size, seed=seed)


def _dynamic_bias(
    network: nn.Module,
    example_input: Tensor,
    size: int | None,
    sites: Sequence[str] | str | None,
    seed: int,
) -> DynamicBias:
    if isinstance(sites, str) or (sites is not None and len(sites) != 1):
        raise ConfigError(
            "a network without convolutions takes one site, a list of the name of an "
            f"nn.Linear, got {sites!r}"
        )
    return DynamicBias(
        network,
        size=BIAS_SIZE if size is None else size,
        seed=seed,
        site=None if sites is None else sites[0],
        example_input=example_input,
    )

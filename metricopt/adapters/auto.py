"""The adapter a network gets when none is named."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM, Form
from metricopt.adapters.output_offsets import (
    OutputOffsets,
    Unmodulated,
    columns,
    untouched_outputs,
)
from metricopt.adapters.sites import find_sites, is_scripted, record_shapes
from metricopt.errors import ConfigError, require_kind
from metricopt.reading.inputs import Inputs, count_of
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.outputs import Outputs, are_embeddings

DIRECT_LIMIT = 256
"""Largest phi for which `auto_adapter` takes FiLM's direct form; most offsets."""
BIAS_SIZE = 16
"""Size of phi in a network without convolutions, as in the paper."""


def auto_adapter(
    network: nn.Module,
    example_input: Inputs,
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
    embeddings of unit length. A network without a layer that can be modulated gets
    `OutputOffsets` alone.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        example_input: network inputs, each [N, ...]; one example is enough.
        size: size of `FiLM` or `DynamicBias`; for `FiLM`, giving it selects the
            generator form.
        sites: modules to modulate, as in `FiLM`; for `DynamicBias` a list of one name.
        seed: seed of the adapter's fixed random weights.
        offsets: whether output offsets are wanted; what outputs mean where they are
            no logits [N, C].

    Raises:
        ConfigError: if the network is scripted or traced, has neither a layer to
            modulate nor outputs that take offsets, or a site is unknown.
    """
    if is_scripted(network):
        raise ConfigError(
            f"the network must not be scripted or traced, got a "
            f"{type(network).__name__}: pass the network it was made of, or wrap it in "
            "an nn.Module that calls it"
        )
    require_kind("offsets", offsets, bool | Meaning, "True, False or a Meaning")
    inner = _inner(network, example_input, size, sites, seed)
    meaning = offsets if isinstance(offsets, Meaning) else PLAIN
    if offsets and _take_offsets(untouched_outputs(inner, example_input), meaning):
        return OutputOffsets(inner, example_input, meaning)
    if not inner.size:
        raise ConfigError(
            f"{type(network).__name__} has no layer that can be modulated, so it needs "
            f"offsets, of one tensor with 1 to {DIRECT_LIMIT} outputs that are no "
            "embeddings: make an adapter by hand, with a layer as its site"
        )
    return inner


def _take_offsets(outputs: Outputs, meaning: Meaning) -> bool:
    """Return whether offsets suit the outputs of a network."""
    if not 1 <= columns(outputs, meaning) <= DIRECT_LIMIT:
        return False
    # Embeddings have no class that an offset could favour.
    return not (isinstance(outputs, Tensor) and are_embeddings(outputs))


def _inner(
    network: nn.Module,
    example_input: Inputs,
    size: int | None,
    sites: Sequence[str] | Literal["stages"] | None,
    seed: int,
) -> NetworkAdapter:
    """Return the adapter beside the offsets, an empty one if no layer is fit for it."""
    convolutional = any(isinstance(module, _ConvNd) for module in network.modules())
    make = _film if convolutional else _dynamic_bias
    if size is not None or sites is not None:
        return make(network, example_input, size, sites, seed)
    try:
        return make(network, example_input, None, None, seed)
    except ConfigError:
        other = _layer_of_rows(network, example_input)
    if other is not None:
        with suppress(ConfigError):
            return _dynamic_bias(network, example_input, None, [other], seed)
    return Unmodulated(network, example_input)


def _layer_of_rows(network: nn.Module, example_input: Inputs) -> str | None:
    """Return the first linear layer with one output for every example, if there is one.

    Layers of attention may have the places of a sequence first, or nested tensors.
    """
    shapes, count = record_shapes(network, example_input), count_of(example_input)
    modules: dict[str, nn.Module] = dict(network.named_modules())
    for name, module in modules.items():
        shape = shapes.get(module)
        if isinstance(module, nn.Linear) and shape and shape[0] == count:
            return name
    return None


def _film(
    network: nn.Module,
    example_input: Inputs,
    size: int | None,
    sites: Sequence[str] | Literal["stages"] | None,
    seed: int,
) -> FiLM:
    if size is not None:
        return FiLM(network, example_input, sites=sites, size=size, seed=seed)
    found = find_sites(network, example_input, sites)
    few = 2 * sum(site.channels for site in found) <= DIRECT_LIMIT
    names = [site.name for site in found]
    form: Form = "direct" if few else "generator"
    return FiLM(network, example_input, sites=names, form=form, seed=seed)


def _dynamic_bias(
    network: nn.Module,
    example_input: Inputs,
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

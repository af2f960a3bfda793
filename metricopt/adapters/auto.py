"""The adapter a network gets when none is named."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.batched import by_row
from metricopt.adapters.dynamic_bias import DynamicBias, first_linear
from metricopt.adapters.film import FiLM, Form
from metricopt.adapters.output_offsets import OutputOffsets, Unmodulated, columns
from metricopt.adapters.sites import Shapes, find_sites, is_scripted, record_run
from metricopt.errors import ConfigError, require_kind
from metricopt.reading.inputs import Inputs, count_of, form_of
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.outputs import are_embeddings, each

DIRECT_LIMIT = 256
"""Largest phi for which `auto_adapter` takes FiLM's direct form."""
MOST_OFFSETS = 1024
"""Most outputs that get offsets."""
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
    output of a network that returns one tensor with at most 1,024 outputs, but not
    beside embeddings of unit length; a scale for each of up to 256 outputs comes with
    them. A network without a layer that can be modulated gets `OutputOffsets` alone.

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
    # What `torch.compile` made follows the network it was made of.
    network = getattr(network, "_orig_mod", network)
    if is_scripted(network):
        raise ConfigError(
            f"the network must not be scripted or traced, got a "
            f"{type(network).__name__}: pass the network it was made of, or wrap it in "
            "an nn.Module that calls it"
        )
    require_kind("offsets", offsets, bool | Meaning, "True, False or a Meaning")
    run = record_run(network, example_input)
    inner = _inner(_Asked(network, example_input, size, sites, seed, run.shapes))
    outputs = by_row(run.returned, 1, count_of(example_input))
    first = each(lambda part: part[0], outputs)
    meaning = offsets if isinstance(offsets, Meaning) else PLAIN
    count = columns(first, meaning)
    # Embeddings have no class that an offset could favour.
    embeddings = isinstance(first, Tensor) and are_embeddings(first)
    if offsets and 1 <= count <= MOST_OFFSETS and not embeddings:
        scaled = count <= DIRECT_LIMIT
        dims = first.ndim if isinstance(first, Tensor) else 0
        return OutputOffsets(
            inner, example_input, meaning, count, dims=dims, scaled=scaled
        )
    if not inner.size:
        raise ConfigError(
            f"{type(network).__name__} has no layer that can be modulated, so it needs "
            f"offsets, of one tensor with 1 to {MOST_OFFSETS} outputs that are no "
            "embeddings: make an adapter by hand, with a layer as its site"
        )
    return inner


class _Asked(NamedTuple):
    """What `auto_adapter` was asked for, and the shapes in the network."""

    network: nn.Module
    example_input: Inputs
    size: int | None
    sites: Sequence[str] | Literal["stages"] | None
    seed: int
    shapes: Shapes


def _inner(asked: _Asked) -> NetworkAdapter:
    """Return the adapter beside the offsets, an empty one if no layer is fit for it."""
    modules = asked.network.modules()
    convolutional = any(isinstance(module, _ConvNd) for module in modules)
    make = _film if convolutional else _dynamic_bias
    if asked.size is not None or asked.sites is not None:
        return make(asked)
    try:
        return make(asked)
    except ConfigError:
        other = _layer_of_rows(asked)
    if other is not None:
        with suppress(ConfigError):
            return _dynamic_bias(asked._replace(sites=[other]))
    return Unmodulated(asked.network, asked.example_input)


def _layer_of_rows(asked: _Asked) -> str | None:
    """Return the first linear layer with one output for every example, if there is one.

    Layers of attention may have the places of a sequence first, or nested tensors.
    """
    count = count_of(asked.example_input)
    modules: dict[str, nn.Module] = dict(asked.network.named_modules())
    for name, module in modules.items():
        shape = asked.shapes.get(module)
        if isinstance(module, nn.Linear) and shape and shape[0] == count:
            return name
    return None


def _film(asked: _Asked) -> FiLM:
    network, example, size, names, seed, shapes = asked
    sites = find_sites(network, example, names, shapes)
    if size is not None:
        return FiLM(network, example, sites=sites, size=size, seed=seed)
    few = 2 * sum(site.channels for site in sites) <= DIRECT_LIMIT
    form: Form = "direct" if few else "generator"
    return FiLM(network, example, sites=sites, form=form, seed=seed)


def _dynamic_bias(asked: _Asked) -> DynamicBias:
    network, example, size, sites, seed, shapes = asked
    if isinstance(sites, str) or (sites is not None and len(sites) != 1):
        raise ConfigError(
            "a network without convolutions takes one site, a list of the name of an "
            f"nn.Linear, got {sites!r}"
        )
    site = sites[0] if sites else first_linear(network, form_of(example), shapes)
    size = BIAS_SIZE if size is None else size
    return DynamicBias(network, size=size, seed=seed, site=site, example_input=example)

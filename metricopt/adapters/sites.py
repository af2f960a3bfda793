"""Sites: the modules whose outputs an adapter modulates, and what phi does to them."""

import difflib
import itertools
from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm

from metricopt.errors import ConfigError
from metricopt.process.keeping import evaluating
from metricopt.reading.inputs import Inputs, call_on_copy

Shapes = dict[nn.Module, tuple[int, ...] | None]
"""Output shape of every called module, by last call; None if it is no plain tensor."""


class RecordedRun(NamedTuple):
    """What one run of a network gave: shapes inside, and what it returned."""

    shapes: Shapes
    returned: Any


_NORMALISATIONS = (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


@dataclass(frozen=True)
class Site:
    """A module whose output is modulated, channel by channel.

    Attributes:
        name: dotted name of the module in the network; "" is the network itself.
        module: the module.
        channels: number of channels C of its output.
        channel_dim: axis of the channels in the output: 1, or -1 for layers that
            keep them last.
        dims: number of axes of the output, examples included; 0 where not known.
    """

    name: str
    module: nn.Module
    channels: int
    channel_dim: int
    dims: int = 0


def record_run(network: nn.Module, inputs: Inputs) -> RecordedRun:
    """Run the network once, in evaluation mode, and record every output shape."""
    shapes: Shapes = {}

    def record(module: nn.Module, _: object, output: Any) -> None:
        shapes.pop(module, None)  # inserted again: the order is that of the last call
        plain = isinstance(output, Tensor) and not output.is_nested
        shapes[module] = tuple(output.shape) if plain else None

    evaluating(network)
    with ExitStack() as hooks, torch.no_grad():
        for module in itertools.filterfalse(is_scripted, network.modules()):
            hooks.callback(module.register_forward_hook(record).remove)
        return RecordedRun(shapes, call_on_copy(network, inputs))


def is_scripted(module: nn.Module) -> bool:
    """Return whether a module is scripted or traced, so that nothing can change it."""
    return isinstance(module, torch.jit.ScriptModule)


def find_module(network: nn.Module, name: str) -> nn.Module:
    """Return the module of a name, or raise ConfigError with the nearest names."""
    modules: dict[str, nn.Module] = dict(network.named_modules(remove_duplicate=False))
    if name not in modules:
        near = difflib.get_close_matches(name, modules, n=3, cutoff=0.0)
        raise ConfigError(
            f"unknown site {name!r} in {type(network).__name__}; "
            f"nearest: {', '.join(map(repr, near))}"
        )
    return modules[name]


def find_sites(
    network: nn.Module,
    example_input: Inputs,
    names: Sequence[str] | Literal["stages"] | None,
    shapes: Shapes | None = None,
) -> tuple[Site, ...]:
    """Return sites of a network with the channels their outputs have.

    Args:
        network: the network; it runs once unless shapes are given.
        example_input: network inputs, each [N, ...].
        names: dotted module names, at least one, all different modules. None for the
            last normalisation layer in execution order, the cheapest site, as all
            before it is computed once and cached. "stages" for the last one of every
            spatial resolution, early to late. Convolutions stand for normalisation
            layers in a network without any.
        shapes: what `record_run` found, if the network ran on the input before.

    Raises:
        ConfigError: if a name is unknown, repeated, never called by the network, or the
            output of its module is no tensor with channels; or no layer is fit.
    """
    if isinstance(names, str) and names != "stages":
        raise ConfigError(
            f"sites must be a list of module names, 'stages' or None, got {names!r}"
        )
    if names is not None and names != "stages":
        modules = [find_module(network, name) for name in names]
        if not names or len(set(modules)) < len(modules):
            raise ConfigError(
                f"sites must be one or more different modules, got {names}"
            )
    if shapes is None:
        shapes = record_run(network, example_input).shapes
    if names is None:
        names = [_candidates(network, shapes)[-1][0]]
    elif names == "stages":
        stages = {shape[2:]: name for name, shape in _candidates(network, shapes)}
        names = list(stages.values())
    return tuple(_site(name, find_module(network, name), shapes) for name in names)


def require_called(sites: Sequence[Site], called: Container[nn.Module]) -> None:
    """Raise ConfigError if the network does not call one of the sites."""
    for site in sites:
        if site.module not in called:
            raise ConfigError(f"site {site.name!r} is never called by the network")


def require_all(seen: int, batch: int) -> None:
    """Raise ConfigError if a site sees some examples of a batch only, not each.

    It may see each several times, as a layer of tokens or of windows does.
    """
    if seen % max(1, batch):
        raise ConfigError(
            f"a layer that phi modulates must see every example, got {seen} of {batch}:"
            " give sites=[...] the name of a layer to which no router or mask sends "
            "only some examples"
        )


def _site(name: str, module: nn.Module, shapes: Shapes) -> Site:
    axis = _channel_dim(module)
    require_called([Site(name, module, 0, axis)], shapes)
    shape = shapes[module]
    if shape is None or len(shape) < 2:
        got = "no tensor" if shape is None else f"shape {shape}"
        raise ConfigError(f"site {name!r} must give [N, C, ...], got {got}")
    return Site(name, module, shape[axis], axis, len(shape))


def _channel_dim(module: nn.Module) -> int:
    """Axis of the channels: last for layers of tokens, but not for LayerNorm2d.

    A module says so itself by an attribute `channel_dim`.
    """
    said: int | None = getattr(module, "channel_dim", None)
    if said is not None:
        return said
    last = isinstance(module, (nn.Linear, nn.LayerNorm, nn.RMSNorm))
    return -1 if last and "2d" not in type(module).__name__ else 1


def _candidates(
    network: nn.Module, shapes: Shapes
) -> list[tuple[str, tuple[int, ...]]]:
    """Names and output shapes of the layers fit to be a site, in execution order."""
    names = {module: name for name, module in network.named_modules()}
    for kinds in (_NORMALISATIONS, (_ConvNd,)):
        found = [
            (names[module], shape)
            for module, shape in shapes.items()
            if isinstance(module, kinds) and shape is not None and len(shape) > 1
        ]
        if found:
            return found
    raise ConfigError(
        f"{type(network).__name__} calls no normalisation layer and no convolution; "
        "name the sites, or use DynamicBias"
    )


@dataclass(frozen=True)
class Modulation:
    """What B rows of phi do to the outputs of the sites.

    Attributes:
        rows: number of rows B.
        factors: one factor per channel for every site, each of shape [B, C]; None
            where channels are shifted only.
        shifts: one shift per channel for every site, each of shape [B, C].
        channel_dims: axis of the channels in the output of every site, 1 or -1.
        batch: examples [B * n] that the network runs on at once, of which every site
            has to see all; None where there is one row, so that any number will do.

    Raises:
        ConfigError: if a site sees some of the examples only.
    """

    rows: int
    factors: tuple[Tensor, ...] | None
    shifts: tuple[Tensor, ...]
    channel_dims: tuple[int, ...]
    batch: int | None = None

    def shared(self, hidden: Tensor, site: int) -> Tensor:
        """Modulate the same N examples by every row; only the output is B times as big.

        From [N, ...], the output of a site, to [B * N, ...], the N of row 0 first.
        """
        return self._modulate(hidden.unsqueeze(0), site)

    def grouped(self, hidden: Tensor, site: int) -> Tensor:
        """Modulate each row's own n examples [B * n, ...], the n of row 0 first."""
        require_all(len(hidden), self.batch or 1)
        examples = len(hidden) // self.rows
        by_row = hidden.reshape(self.rows, examples, *hidden.shape[1:])
        return self._modulate(by_row, site)

    def _modulate(self, hidden: Tensor, site: int) -> Tensor:
        """Broadcast [B, 1, C, 1, ...] over hidden [B or 1, n, C, ...], then flatten."""
        shape = [self.rows] + [1] * (hidden.ndim - 1)
        shape[2 if self.channel_dims[site] == 1 else -1] = -1
        shift = self.shifts[site].view(shape).to(hidden)
        if self.factors is None:
            return (hidden + shift).flatten(0, 1)
        factor = self.factors[site].view(shape).to(hidden)
        # addcmul does not vectorise what is broadcast: it takes three times as long.
        return (hidden * factor).add_(shift).flatten(0, 1)

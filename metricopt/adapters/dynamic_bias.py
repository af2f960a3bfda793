"""DynamicBias: phi as extra inputs of a fully connected network."""

import math

import torch
from torch import Tensor, nn

from metricopt.adapters.network_cut import in_order
from metricopt.adapters.site_adapter import SiteAdapter
from metricopt.adapters.sites import Modulation, Shapes, Site, find_module, record_run
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator
from metricopt.reading.inputs import Form, Inputs, form_of


class DynamicBias(SiteAdapter):
    """Concatenates phi to the input of a linear layer.

    With extra weights V [out, d], `W x + b` becomes `W x + b + V phi`. The product
    with the data is computed once; what phi adds is a bias. V is frozen and Gaussian.
    Its standard deviation `1 / sqrt(fan_in + d)` is the usual initial scale of a
    layer with fan_in + d inputs.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        size: number d of adapter parameters, at least 1.
        seed: seed of V.
        site: name of the linear layer; by default the one that runs first.
        example_input: network inputs, each [N, ...], to decide now where the network
            is cut; by default the first encoded inputs decide.

    Raises:
        ConfigError: if d < 1, or the site is unknown or not an `nn.Linear`.

    Source: Huang et al., CVPR 2021, Figure S1 (a), after CAVIA, Zintgraf et al., ICML
        2019. Differs: V is random and frozen.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        size: int,
        seed: int = 0,
        site: str | None = None,
        example_input: Inputs | None = None,
    ) -> None:
        if size < 1:
            raise ConfigError(f"size must be at least 1, got {size}")
        name, layer = _linear(network, site, example_input)
        generator = make_generator("DynamicBias", seed)
        deviation = 1 / math.sqrt(layer.in_features + size)
        weights = deviation * torch.randn(
            layer.out_features, size, generator=generator, dtype=torch.float64
        )
        super().__init__(
            network,
            [Site(name, layer, layer.out_features, -1)],
            size=size,
            projection=weights.T.contiguous(),
        )
        self.seed = seed
        if example_input is not None:
            self._settle(example_input)

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        return super().describe() | {"seed": str(self.seed)}

    def _modulation(self, phi: Tensor) -> Modulation:
        shifts = (self._coefficients(phi),)
        return Modulation(len(phi), None, shifts, self._channel_dims)


def _linear(
    network: nn.Module, name: str | None, example_input: Inputs | None
) -> tuple[str, nn.Linear]:
    """Return name and layer: the one called `name`, or the first that runs."""
    if name is None and example_input is not None:
        shapes = record_run(network, example_input).shapes
        name = first_linear(network, form_of(example_input), shapes)
    elif name is None:
        name = first_linear(network, None)
    layer = find_module(network, name)
    if not isinstance(layer, nn.Linear):
        got = type(layer).__name__
        raise ConfigError(f"site {name!r} must be an nn.Linear, got {got}")
    return name, layer


def first_linear(network: nn.Module, form: Form, shapes: Shapes | None = None) -> str:
    """Return the name of the linear layer that runs first, or raise ConfigError.

    With the shapes that `record_run` found, layers that nothing calls are left out:
    attention reads the weights of some.
    """
    layers = in_order(network, nn.Linear, form)
    if shapes is not None:
        layers = [layer for layer in layers if shapes.get(layer) is not None]
    if not layers:
        raise ConfigError(f"{type(network).__name__} has no nn.Linear that it calls")
    modules: dict[str, nn.Module] = dict(network.named_modules())
    return next(name for name, module in modules.items() if module is layers[0])

"""The base class of adapters that modulate the outputs of named modules."""

import copy
import json
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from metricopt.adapters.applied.changed import Change, also_of_one
from metricopt.adapters.applied.folding import folded, replaced, unwrapped
from metricopt.adapters.base import Features, NetworkAdapter
from metricopt.adapters.batched import BatchedNetwork, batch_network
from metricopt.adapters.network_cut import GraphCut, site_changes
from metricopt.adapters.sites import Modulation, Site, require_all
from metricopt.errors import ConfigError, ShapeError
from metricopt.process.seeding import make_generator
from metricopt.reading.inputs import (
    Form,
    Inputs,
    count_of,
    each_input,
    form_of,
    selected,
    tensors_of,
)
from metricopt.reading.outputs import Outputs

_CHECKED_EXAMPLES = 4


class SiteAdapter(NetworkAdapter):
    """Modulates the outputs of named modules by coefficients linear in phi.

    The first inputs seen decide whether the network is cut. If the cut does not give
    the same outputs as hooks, the whole network runs at every call.

    Attributes:
        network: the network theta, frozen and in evaluation mode.
        sites: where it is modulated.
        size: number d of adapter parameters.
        projection: the fixed matrix from phi to all coefficients, shape [d, P],
            float64 on the CPU; None if phi holds the coefficients themselves.
    """

    def __init__(
        self,
        network: nn.Module,
        sites: Sequence[Site],
        *,
        size: int,
        projection: Tensor | None,
    ) -> None:
        super().__init__(network, size)
        self.sites = tuple(sites)
        self.projection = projection
        self._cast_projection: Tensor | None = None
        self._channel_dims = tuple(site.channel_dim for site in self.sites)
        self._batched: BatchedNetwork | None = None
        self._form: Form = None

    @property
    def is_cut(self) -> bool:
        """Whether `encode` returns activations; if not, it returns the inputs.

        Raises:
            ConfigError: if no inputs have been seen yet.
        """
        return isinstance(self._settled().cut, GraphCut)

    def encode(self, inputs: Inputs) -> Features:
        """Run the network up to the first site, without gradient; see `Adapter`.

        Raises:
            ConfigError: if, at the first call, the network turns out not to call a
                site, to return no tensors, or to mix the examples of a batch.
            ShapeError: if the inputs have not the form of the first ones.
        """
        if self._batched is None:
            self._settle(inputs)
        if form_of(inputs) != self._form:
            raise ShapeError(
                f"inputs must have the form of the first ones, {_named(self._form)}, "
                f"got {_named(form_of(inputs))}"
            )
        with self.detached():
            features = self._settled().cut.encode(inputs)
        for part in features:
            require_all(len(part), count_of(inputs))
        return features

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples; see `Adapter`.

        C = 1 for a network that returns [N]; dense outputs are [B, N, C, ...].

        Raises:
            ShapeError: if phi is not [B, d]; the message names both shapes.
            ConfigError: if no inputs have been encoded yet.
        """
        self._check(features, phi)
        with self.detached():
            return self._settled().shared(features, self._modulation(phi))

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `predict`.

        Raises:
            ShapeError: if phi is not [B, d] or B does not divide the examples.
            ConfigError: if no inputs have been encoded yet.
        """
        self._check(features, phi)
        if len(features[0]) % len(phi):
            raise ShapeError(
                f"the {len(features[0])} examples must be a multiple of the "
                f"{len(phi)} rows of phi"
            )
        with self.detached():
            return self._settled().grouped(features, self._modulation(phi))

    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return the sites, and how phi [d] modulates their outputs."""
        changes = site_changes(self.sites, lambda: self._modulation(phi.unsqueeze(0)))
        return [
            (site.module, also_of_one(change, site.dims, site.channels))
            for site, change in zip(self.sites, changes, strict=True)
        ]

    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network with scales and shifts in its weights."""
        with self.detached():
            network = copy.deepcopy(self.network)
        modulation = self._modulation(phi.detach().unsqueeze(0))
        layers = [network.get_submodule(site.name) for site in self.sites]
        for place, (site, layer) in enumerate(zip(self.sites, layers, strict=True)):
            factors, shift = modulation.factors, modulation.shifts[place][0]
            factor = None if factors is None else factors[place][0]
            new = folded(layer, factor, shift, site.channel_dim, site.dims)
            network = replaced(network, layer, new)
        return unwrapped(network)

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        return {
            "adapter": type(self).__name__,
            "size": str(self.size),
            "sites": json.dumps([site.name for site in self.sites]),
        }

    @abstractmethod
    def _modulation(self, phi: Tensor) -> Modulation:
        """Return what phi, shape [B, d], does at the sites."""

    def _coefficients(self, phi: Tensor) -> Tensor:
        """Return all coefficients, shape [B, P], with the dtype and device of phi."""
        if self.projection is None:
            return phi
        cast = self._cast_projection
        if cast is None or cast.dtype != phi.dtype or cast.device != phi.device:
            # Gradients could not flow through a kept inference tensor later.
            with torch.inference_mode(False):
                self._cast_projection = cast = self.projection.to(phi, copy=True)
        return phi @ cast

    def _check(self, features: Features, phi: Tensor) -> None:
        if phi.ndim != 2 or phi.shape[1] != self.size or not len(phi):
            raise ShapeError(
                f"phi must have shape [B, {self.size}], B >= 1, got {tuple(phi.shape)}"
            )
        expected = len(self._settled().cut.entries)
        if len(features) != expected:
            raise ShapeError(
                f"features must hold {expected} tensors, got {len(features)}"
            )

    def _settled(self) -> BatchedNetwork:
        if self._batched is None:
            raise ConfigError(
                "encode some inputs first: they decide where the network is cut"
            )
        return self._batched

    def _settle(self, inputs: Inputs) -> None:
        """Decide, on a few examples, where the network is cut."""
        if not count_of(inputs):
            got = ", ".join(str(tuple(part.shape)) for part in tensors_of(inputs))
            raise ShapeError(f"the first inputs must hold an example, got {got}")
        with self.detached(), torch.inference_mode(False), torch.no_grad():
            few = selected(inputs, slice(_CHECKED_EXAMPLES))
            sample = each_input(lambda part: part.detach().clone(), few)
            phi = 0.1 * torch.randn(2, self.size, generator=make_generator("settle"))
            first, *_ = tensors_of(sample)
            phi = phi.to(first if first.is_floating_point() else first.device)
            parts = [self._modulation(part) for part in (phi, phi[:1], phi[1:])]
            self._batched = batch_network(self.network, self.sites, parts, sample)
            self._form = form_of(sample)


def _named(form: Form) -> str:
    """Return a form of inputs in words."""
    if form is None:
        return "one tensor"
    if isinstance(form, int):
        return f"{form} tensors"
    return f"tensors named {', '.join(map(repr, form))}"

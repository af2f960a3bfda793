"""Whether a network with phi in it does what an adapter predicts of it.

phi is chosen by what the adapter predicts; what a user runs is the network with phi in
it, or a merged copy. No form of network is safe by itself, so both are run on a few
examples.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.batched import largest, outputs_of
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator
from metricopt.reading.inputs import Inputs
from metricopt.reading.outputs import Outputs, parts_of

DEVIATION = 0.1
"""Standard deviation of the phi that is tried."""
EFFECT = 1e-2
"""Most that outputs may be off, relative to the largest effect of phi on one."""
ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}
COARSE = 5e-2
"""Further tolerance, relative to the largest output."""


class Tried(NamedTuple):
    """A phi, and what an adapter predicts of it.

    Attributes:
        phi: adapter parameters, shape [d].
        predicted: outputs under phi and under 0, shape [2, n, ...].
    """

    phi: Tensor
    predicted: Outputs


def tried(adapter: NetworkAdapter, inputs: Inputs) -> Tried:
    """Return a phi drawn at random with what an adapter predicts of it.

    Inputs are a few examples; the adapter is applied to no network.
    """
    generator = make_generator("agreement")
    phi = DEVIATION * torch.randn(adapter.size, generator=generator)
    phi = phi.to(next(adapter.network.parameters(), phi).device)
    return _predicted(adapter, phi, inputs)


def check_applied(adapter: NetworkAdapter, inputs: Inputs, tried: Tried) -> None:
    """Raise ConfigError if a network with phi applied differs from the prediction."""
    with torch.no_grad(), adapter.attach(tried.phi):
        found = outputs_of(adapter.network, inputs)
    if not _agree(found, tried.predicted):
        raise ConfigError(
            "with phi in it, the network must give the outputs that phi is chosen by, "
            "but they differ: put a forward hook that changes outputs into a module "
            "of its own, and call layers, never their forward"
        )


def check_merged(
    adapter: NetworkAdapter, merged: nn.Module, phi: Tensor, inputs: Inputs
) -> None:
    """Raise ConfigError if a merged copy differs from what is predicted of phi."""
    refusal = (
        "merge() cannot put phi into a copy of this network, as its code reads the "
        "weights of a layer, or holds layers outside of attributes and containers of "
        "torch: use apply()"
    )
    try:
        with torch.no_grad():
            found = outputs_of(merged, inputs)
    except Exception as error:  # of the code of a user, around other layers
        raise ConfigError(refusal) from error
    if not _agree(found, _predicted(adapter, phi, inputs).predicted):
        raise ConfigError(refusal)


@torch.no_grad()
def _predicted(adapter: NetworkAdapter, phi: Tensor, inputs: Inputs) -> Tried:
    both = torch.stack([phi, torch.zeros_like(phi)])
    return Tried(phi, adapter.predict(adapter.encode(inputs), both))


def _agree(found: Outputs, predicted: Outputs) -> bool:
    """Return whether outputs are those predicted, as far as phi has an effect."""
    pairs = zip(parts_of(found), parts_of(predicted), strict=True)
    return all(_near(one, *two) for one, two in pairs)


def _near(found: Tensor, expected: Tensor, untouched: Tensor) -> bool:
    rounding = ROUNDING.get(found.dtype, COARSE)
    off = EFFECT * largest(expected - untouched) + rounding * largest(expected)
    return torch.allclose(found, expected, rtol=0.0, atol=off, equal_nan=True)

"""Run a network for many phi at once, cut in two if a check finds equal outputs."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.adapters.base import Features
from metricopt.adapters.network_cut import (
    TRACE_ERRORS,
    GraphCut,
    HookedNetwork,
    cut_network,
)
from metricopt.adapters.sites import Modulation, Site, require_called
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.inputs import (
    Inputs,
    call_on_copy,
    count_of,
    form_of,
    selected,
    tensors_of,
)
from metricopt.reading.outputs import Outputs, each, joined, logits_of, parts_of

# Relative to the largest output. Reduced-precision convolutions (TF32, bfloat16) round
# differently for different batch sizes; a wrong cut is off by far more.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-2}
_HALF_TOLERANCE = 1e-1
MIXED = (
    "the network must treat the examples of a batch one by one, but in evaluation mode "
    "its outputs depend on the other examples"
)
"""Message about a network that does not."""
RANDOM = (
    "the network must return the same outputs at every run, but in evaluation mode "
    "they depend on chance: is there a dropout with training=True, or an observer "
    "of quantisation that is on?"
)
"""Message about a network that does not."""


@dataclass(frozen=True)
class BatchedNetwork:
    """A network that runs for B rows of phi in one forward pass.

    Attributes:
        cut: the network in two halves, or whole with hooks.
        copies: whether features are copied, since the network changes them in place.
    """

    cut: GraphCut | HookedNetwork
    copies: bool = False

    def shared(self, features: Features, modulation: Modulation) -> Outputs:
        """Return outputs [B, N, ...] of every row on the same N examples."""
        examples = len(features[0])
        modulation = replace(modulation, batch=modulation.rows * examples)
        values = [
            self._repeat(value, modulation.rows)
            if site is None
            else modulation.shared(value, site)
            for site, value in zip(self.cut.entries, features, strict=True)
        ]
        outputs = self.cut.decode(values, modulation)
        return by_row(outputs, modulation.rows, examples)

    def grouped(self, features: Features, modulation: Modulation) -> Outputs:
        """Return outputs [B, n, ...] of every row on n examples of its own."""
        modulation = replace(modulation, batch=len(features[0]))
        values = [
            self._repeat(value, 1) if site is None else modulation.grouped(value, site)
            for site, value in zip(self.cut.entries, features, strict=True)
        ]
        outputs = self.cut.decode(values, modulation)
        examples = len(features[0]) // modulation.rows
        return by_row(outputs, modulation.rows, examples)

    def _repeat(self, value: Tensor, rows: int) -> Tensor:
        """Repeat [N, ...] to [B * N, ...], by `cat` because it keeps channels-last."""
        if rows == 1:
            return value.clone() if self.copies else value
        return torch.cat([value] * rows)


def batch_network(
    network: nn.Module,
    sites: Sequence[Site],
    modulations: Sequence[Modulation],
    sample: Inputs,
) -> BatchedNetwork:
    """Return the network cut at its first site, or whole with hooks.

    The cut is taken if two phi at once give the outputs of hooks with one phi at a
    time, the second on half of the examples at a time. A few examples are enough.

    Args:
        network: the network, in evaluation mode.
        sites: the sites.
        modulations: the modulation of two phi together, then of each alone.
        sample: network inputs, each [N, ...].

    Raises:
        ConfigError: if the network does not call a site, returns anything but one
            tensor or a tuple of tensors, mixes the examples of a batch, or draws at
            random.
        ShapeError: if it does not return one output per example.
    """
    form = form_of(sample)
    hooked = HookedNetwork(network, sites, form)
    both, first, second = modulations
    careful, whole = BatchedNetwork(hooked, copies=True), tensors_of(sample)
    halves = torch.arange(count_of(sample)).tensor_split(2)
    parts = [tensors_of(selected(sample, half)) for half in halves if len(half)]
    called: set[nn.Module] = set()
    with ExitStack() as watches:
        for site in sites:
            watch = site.module.register_forward_hook(lambda m, *_: called.add(m))
            watches.callback(watch.remove)
        alone = careful.shared(whole, first)
        # In other batches: it differs from both together if examples are mixed.
        apart = joined([careful.shared(part, second) for part in parts], 1)
    require_called(sites, called)
    for cut in (cut_network(network, sites, form), hooked):
        batched = cut and _agreeing(cut, sample, both, joined([alone, apart], 0))
        if batched:
            return batched
    steady = are_close(careful.shared(whole, first), alone)
    raise ConfigError(MIXED if steady else RANDOM)


def _agreeing(
    cut: GraphCut | HookedNetwork, sample: Inputs, both: Modulation, expected: Outputs
) -> BatchedNetwork | None:
    """Return the batched network of a cut if it gives the expected outputs."""
    batched = BatchedNetwork(cut)
    try:
        features = cut.encode(sample)
        if any(len(value) != count_of(sample) for value in features):
            return None
        twice = tuple(torch.cat([value, value]) for value in features)
        versions = [value._version for value in twice]
        outputs = [batched.grouped(twice, both)]
        if isinstance(cut, GraphCut):  # else both run the network on the same tensors
            outputs.append(batched.shared(features, both))
    except TRACE_ERRORS:
        return None
    if not all(are_close(found, expected) for found in outputs):
        return None
    written = versions != [value._version for value in twice]
    return replace(batched, copies=written)


def outputs_of(network: nn.Module, inputs: Inputs) -> Outputs:
    """Return the outputs [N, ...] of a network as it is, in the form of `by_row`."""
    returned = call_on_copy(network, inputs)
    return each(lambda part: part[0], by_row(returned, 1, count_of(inputs)))


def by_row(returned: Any, rows: int, examples: int) -> Outputs:
    """Reshape what a network returned to [B, N, ...]; one tensor [B * N] to [B, N, 1].

    Only losses and metrics that take tuples read several tensors, as they are.

    Raises:
        ConfigError: if it is not clear which tensor of it counts.
        ShapeError: if it has not one output per example.
    """
    outputs = each(lambda part: _by_row(part, rows, examples), logits_of(returned))
    flat = isinstance(outputs, Tensor) and outputs.ndim == 2
    return each(lambda part: part[..., None], outputs) if flat else outputs


def _by_row(outputs: Tensor, rows: int, examples: int) -> Tensor:
    if outputs.ndim == 0 and rows * examples == 1:
        outputs = outputs[None]  # a network that squeezes, on one example
    if outputs.ndim == 0 or len(outputs) != rows * examples:
        raise ShapeError(
            f"the network must return one output for each of {rows * examples} "
            f"examples, got shape {tuple(outputs.shape)}"
        )
    return outputs.reshape(rows, examples, *outputs.shape[1:])


def are_close(outputs: Outputs, expected: Outputs) -> bool:
    """Return whether outputs are equal, but for what other batches round."""
    pairs = [*zip(parts_of(outputs), parts_of(expected), strict=False)]
    several = [None if isinstance(e, Tensor) else len(e) for e in (outputs, expected)]
    return several[0] == several[1] and all(_tensors_close(*pair) for pair in pairs)


def _tensors_close(outputs: Tensor, expected: Tensor) -> bool:
    if outputs.shape != expected.shape:
        return False
    off = _TOLERANCE.get(expected.dtype, _HALF_TOLERANCE) * largest(expected)
    return torch.allclose(outputs, expected, rtol=0.0, atol=off, equal_nan=True)


def largest(values: Tensor) -> float:
    """Return the greatest size of values, apart from infinity; 0 without any."""
    sizes = values.abs().nan_to_num(posinf=0.0)
    return float(sizes.amax()) if sizes.numel() else 0.0

"""Outputs of a network, as many examples at a time as memory allows."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.reading.outputs import joined
from metricopt.tasks.examples import Examples

CHUNK = 8_192
"""Most examples in one forward pass."""
NUMBERS = 2**21
"""Most numbers in the inputs of one forward pass: some 700 images of CIFAR-10."""
EMBEDDED = 64
"""How many of them a whole number counts as: networks make vectors of each."""


Forward = Callable[[Tensor], Any]
"""Maps inputs [n, ...] to outputs."""


def predict(network: nn.Module, inputs: Tensor, forward: Forward | None = None) -> Any:
    """Return the outputs in evaluation mode, without gradients.

    They are [N, C], or a tuple of tensors [N, ...] where the network returns one.

    Args:
        network: left in evaluation mode.
        inputs: inputs of N examples, shape [N, ...].
        forward: how the network is called; None for the plain call.
    """
    call = forward or network
    network.eval()
    with torch.no_grad():
        parts = inputs.split(_examples_at_once(inputs))
        return joined([call(part) for part in parts], 0)


def predict_examples(
    network: nn.Module, examples: Examples, forward: Forward | None = None
) -> Any:
    """Return the outputs of all examples, as `predict` does; inputs need not be held.

    Args:
        network: left in evaluation mode.
        examples: N of them.
        forward: how the network is called; None for the plain call.
    """
    chunk = _examples_at_once(examples.batch(slice(1)))
    starts = range(0, len(examples), chunk)
    parts = (examples.batch(slice(start, start + chunk)) for start in starts)
    return joined([predict(network, part, forward) for part in parts], 0)


def _examples_at_once(inputs: Tensor) -> int:
    numbers = max(1, inputs.shape[1:].numel())
    if not inputs.is_floating_point():
        numbers *= EMBEDDED
    return max(1, min(CHUNK, NUMBERS // numbers))

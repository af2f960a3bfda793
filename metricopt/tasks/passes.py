"""How many examples and rows of phi go through a network in one pass."""

import torch
from torch import Tensor

from metricopt.adapters.base import Features

# Examples times rows of phi evaluated in one forward pass: enough to amortise the
# calls, little enough that activations stay in the processor's cache.
EXAMPLES_PER_PASS = 16_384
# For feature maps the limit is on their numbers. On two maps of 64 x 8 x 8 per example
# it is several times as fast as all examples at once. Fewer numbers mean more calls.
# More do not fit the cache, and their memory is allocated anew at every pass.
MAP_NUMBERS_PER_PASS = 2**20
# Examples times rows whose outputs are held at once, for feature maps. Maps are read
# from memory once for all these rows; one read takes longer than one row's arithmetic.
MAP_OUTPUTS_HELD = 2**18

# Limits for encoding. Images have many activations, so they come in smaller chunks than
# rows of a table.
EXAMPLES_ENCODED = 4_096
NUMBERS_ENCODED = 2**17
# A network makes a vector of every token, so a token counts as many numbers. Vectors
# are longer in large networks, where there is more to do for each call.
TOKEN_NUMBERS = 64
# Most numbers of inputs read at once if features are not kept in memory: 128 MB.
NUMBERS_READ = 2**25


def map_examples_per_pass(features: Features) -> int | None:
    """Return how many examples with feature maps fit the cache; None without maps.

    A GPU has no such cache, and small passes would leave it idle.
    """
    maps = [part for part in features if part.ndim > 2 or _are_tokens(part)]
    numbers = sum(map(_numbers, maps))
    if not numbers or features[0].device.type != "cpu":
        return None
    return min(EXAMPLES_PER_PASS, max(1, MAP_NUMBERS_PER_PASS // numbers))


def judging_pass(rows: int, examples: int, features: Features) -> tuple[int, int]:
    """Return how many rows of phi, and how many examples, go through in one pass."""
    limit = map_examples_per_pass(features)
    if limit is None:
        return rows, max(1, EXAMPLES_PER_PASS // rows)
    together = min(rows, max(1, limit // examples))
    return together, max(1, limit // together)


def rows_held(examples: int, features: Features, *, kept: bool) -> int:
    """Return how many rows of phi may have all their outputs in memory at once.

    Fewer if features are not kept in memory: reading them takes even longer.
    """
    long = not kept or map_examples_per_pass(features) is not None
    return max(1, (MAP_OUTPUTS_HELD if long else EXAMPLES_PER_PASS) // examples)


def encoding_pass(inputs: Features) -> int:
    """Return how many examples are encoded at once, by the tensors of some inputs."""
    numbers = max(1, sum(map(_numbers, inputs)))
    return max(1, min(EXAMPLES_ENCODED, NUMBERS_ENCODED // numbers))


def _are_tokens(part: Tensor) -> bool:
    return part.ndim > 1 and part.dtype in (torch.int32, torch.int64)


def _numbers(part: Tensor) -> int:
    """Return how many numbers an example has in a network after its first layer."""
    each = part.shape[1:].numel()
    return TOKEN_NUMBERS * each if _are_tokens(part) else each

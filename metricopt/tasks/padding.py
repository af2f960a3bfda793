"""Batches of texts of unequal length, as loaders that pad each batch give them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

MASK = "attention_mask"
"""Name of the input that says which tokens of a text count."""
UNCOUNTED = -100
"""Label of a token that counts nowhere: the default of torch's losses."""


def padded(pairs: Sequence[tuple[Any, Tensor]]) -> list[tuple[Any, Tensor]]:
    """Return pairs of inputs and targets, texts among the inputs of one length.

    Inputs are padded that are a dict with an attention mask [n, L]: in it by 0, in all
    whole numbers [n, L] beside it by what stands where the mask is 0, or else by 0.
    Targets [n, L] are padded by `UNCOUNTED`. Anything else stays as it is.
    """
    if not all(_is_text(inputs) for inputs, _ in pairs):
        return list(pairs)
    lengths = [inputs[MASK].shape[1] for inputs, _ in pairs]
    longest = max(lengths)
    if min(lengths) == longest:
        return list(pairs)
    fills = {name: _fill(name, pairs) for name in pairs[0][0]}

    def longer(part: Tensor, length: int, value: int) -> Tensor:
        whole = not part.is_floating_point() and not part.is_complex()
        if part.ndim != 2 or part.shape[1] != length or not whole:
            return part
        return pad(part, (0, longest - length), value=value)

    found = []
    for (inputs, targets), length in zip(pairs, lengths, strict=True):
        named = {
            name: longer(part, length, fills.get(name, 0))
            for name, part in inputs.items()
        }
        found.append((named, longer(targets, length, UNCOUNTED)))
    return found


def _is_text(inputs: Any) -> bool:
    mask = inputs.get(MASK) if isinstance(inputs, dict) else None
    return isinstance(mask, Tensor) and mask.ndim == 2


def _fill(name: str, pairs: Sequence[tuple[Any, Tensor]]) -> int:
    """Return what an input holds in the places that its mask leaves out; 0 if none."""
    if name == MASK:
        return 0
    for inputs, _ in pairs:
        part, mask = inputs.get(name), inputs[MASK]
        if part is not None and part.shape == mask.shape and bool((mask == 0).any()):
            kinds = torch.unique(part[mask == 0])
            return int(kinds[0]) if len(kinds) == 1 else 0
    return 0

"""What may be wrong with a metric or an observe split, in plain sentences."""

from collections.abc import Collection

import torch
from torch import Tensor

ROUNDING = 1e-6
"""Difference of values in native units that the order of a sum may make."""
LISTED = 10
"""Most absent classes that are named."""


def doubts_of_adapter(parts: Collection[str]) -> list[str]:
    """Return a sentence if an adapter has output offsets and nothing else.

    Args:
        parts: names of the parts of the adapter.
    """
    if set(parts) != {"offsets"}:
        return []
    return [
        "the network has no layer that could be modulated; phi are offsets of its "
        "outputs alone."
    ]


def doubts_of_metric(name: str, same: Tensor, shuffled: float) -> list[str]:
    """Return a sentence if a metric is noisy, or depends on the order of examples.

    Args:
        name: name of the metric.
        same: values of the metric for the same outputs, native units, shape [n].
        shuffled: value of the metric for the same examples in another order.
    """
    low, high = same.min().item(), same.max().item()
    if high - low > ROUNDING:
        return [
            f"{name} is noisy: the same outputs scored from {low:.4g} to {high:.4g} in "
            f"{len(same)} queries."
        ]
    if abs(shuffled - low) > ROUNDING:
        return [
            f"{name} depends on the order of the examples: the untouched network "
            f"scores {low:.4g} in the order given, {shuffled:.4g} in another."
        ]
    return []


def doubts_of_classes(observed: Tensor, learned: Tensor) -> list[str]:
    """Return a sentence if classes of observe [N] are classes of train [M].

    For embeddings, which are to be good for classes that nobody has learned.
    """
    both = torch.isin(observed.unique(), learned.to(observed)).sum().item()
    if not both:
        return []
    return [
        f"{both} classes of observe are classes of train: a gain there says little of "
        "classes that are new."
    ]


def doubts_of_labels(counts: Tensor) -> list[str]:
    """Return a sentence if a class has no example, for examples by class [K]."""
    absent = (counts == 0).nonzero().flatten().tolist()
    if not absent:
        return []
    first = ", ".join(map(str, absent[:LISTED]))
    more = ", ..." if len(absent) > LISTED else ""
    return [
        f"the observe split has no example of class {first}{more}: what becomes of "
        "such examples is not seen, and they may be predicted worse."
    ]

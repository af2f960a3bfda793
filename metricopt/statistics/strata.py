"""Strata: what the parts of a split are made alike in, as one number per example."""

import torch
from torch import Tensor

from metricopt.reading.outputs import are_labels

BINS = 10
"""Ranges of numbers that every part has examples of."""


def strata_of_labels(targets: Tensor) -> Tensor:
    """Return labels [N] as they are; one stratum for all examples of other targets."""
    return targets if are_labels(targets) else torch.zeros(len(targets))


def strata_of_label_sets(targets: Tensor) -> Tensor:
    """Return the label sets of zeros and ones [N, K] as numbers [N] in order.

    Sets stand in the order of the rarest label first, so parts that are dealt out in
    this order are alike in rare labels above all.

    Source: the aim is that of iterative stratification, Sechidis et al., ECML 2011.
    Differs: label sets are sorted once, instead of one example dealt at a time.
    """
    rarest_first = targets[:, targets.sum(0).argsort(stable=True)]
    found: Tensor = torch.unique(rarest_first, dim=0, return_inverse=True)[1]
    return found


def strata_of_numbers(targets: Tensor) -> Tensor:
    """Return which range every target [N] or [N, T] is in, by the mean of its ranks."""
    columns = targets.reshape(len(targets), -1).double()
    ranks = columns.argsort(dim=0, stable=True).argsort(dim=0).double().mean(1)
    return (ranks / len(targets) * BINS).long()

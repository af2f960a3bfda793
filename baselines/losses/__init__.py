"""Surrogate losses, one per file: `(outputs [N, C], targets [N]) -> scalar`."""

import sys

from baselines.losses.base import LOSSES, Loss, RowLoss, check_batch_size, make_loss
from metricopt.registry import import_units

__all__ = [
    "LOSSES",
    "Loss",
    "RowLoss",
    "check_batch_size",
    "make_loss",
]

# So that whoever imports the registry finds every loss in it.
import_units(sys.modules[__name__])

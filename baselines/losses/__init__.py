"""Surrogate losses, one per file: `(outputs [N, C], targets [N]) -> scalar`."""

import sys

from baselines.losses.base import LOSSES, Loss
from metricopt.registry import import_units

__all__ = ["LOSSES", "Loss"]

# So that whoever imports the registry finds every loss in it.
import_units(sys.modules[__name__])

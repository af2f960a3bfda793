"""Surrogate losses, one per file: `(outputs [N, C], targets [N]) -> scalar`."""

import sys

from baselines.losses.base import LOSSES, Loss
from metricopt.registry import import_units

__all__ = ["LOSSES", "Loss", "get_loss"]


def get_loss(name: str) -> Loss:
    """Return the registered loss called `name`.

    Raises:
        ConfigError: if there is none; the message lists the known names.
    """
    import_units(sys.modules[__name__])
    return LOSSES.get(name)

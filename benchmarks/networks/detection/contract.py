"""The contract of a detector: torchvision's Faster R-CNN, small or as published."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from metricopt.errors import ConfigError
from metricopt.registry import Registry
from metricopt.seeding import globally_seeded

if TYPE_CHECKING:
    from torch import nn

DETECTORS: Registry[Callable[[int], "nn.Module"]] = Registry(
    "detector", "benchmarks.networks.detection"
)
"""From a number of classes, without the background, to a detector."""


def build_detector(name: str, classes: int, seed: int) -> "nn.Module":
    """Return a detector with random weights, drawn from a seed of its own.

    Args:
        name: of a registered detector.
        classes: number of classes, without the background.
        seed: of the weights.

    Raises:
        ConfigError: if there is no such detector, or no class.
    """
    make = DETECTORS.get(name)
    if classes < 1:
        raise ConfigError(f"a detector needs 1 class or more, got {classes}")
    with globally_seeded(seed):
        return make(classes)

"""Arms that take long, shortened for the smoke tier: all that they do, less often."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.runs.codec import merged
from benchmarks.runs.spec import Arm

MARKS = {"marks": [3, 6]}
SHORTER: Mapping[str, Mapping[str, Any]] = {
    "metricopt-outputs": {
        "search": {"steps": 5},
        "portfolio": MARKS,
        "cross_fitting": {"steps": 20, "rungs": [5, 10], "every": 5, "samples": 20},
    },
    "portfolio": {"settings": MARKS},
    "trust-region-bo": {"candidates": 50, "fit_steps": 4},
    "white-box": {"rates": [0.1], "steps": 50},
}
"""Settings of methods, by name."""


def shorter(arm: Arm) -> Arm:
    """Return an arm with the settings above, where its own do not say otherwise."""
    short = SHORTER.get(arm.name, {}) if arm.kind == "method" else {}
    return replace(arm, settings=merged(short, arm.settings))

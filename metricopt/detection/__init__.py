"""Detection of objects: boxes, what is right of them, and curves of precision.

What a user needs is offered here; it is imported on first access.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metricopt.detection.detections import Kept
    from metricopt.detection.head import DetectorHead, Regions
    from metricopt.losses.detection import DetectionLoss
    from metricopt.metrics.detection import DetectionMetric

__all__ = ["DetectionLoss", "DetectionMetric", "DetectorHead", "Kept", "Regions"]

_LATE = {
    "DetectionLoss": "metricopt.losses.detection",
    "DetectionMetric": "metricopt.metrics.detection",
    "DetectorHead": "metricopt.detection.head",
    "Kept": "metricopt.detection.detections",
    "Regions": "metricopt.detection.head",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)

"""Detection of objects: boxes, what is right of them, and curves of precision.

What a user needs is offered here; it is imported on first access.
"""

from typing import TYPE_CHECKING

from metricopt.late_names import late_names

if TYPE_CHECKING:
    from metricopt.detection.detections import Kept
    from metricopt.detection.head import DetectorHead, Regions
    from metricopt.losses.detection import DetectionLoss
    from metricopt.metrics.detection import DetectionMetric

__all__ = ["DetectionLoss", "DetectionMetric", "DetectorHead", "Kept", "Regions"]

__getattr__ = late_names(
    __name__,
    {
        "DetectionLoss": "metricopt.losses.detection",
        "DetectionMetric": "metricopt.metrics.detection",
        "DetectorHead": "metricopt.detection.head",
        "Kept": "metricopt.detection.detections",
        "Regions": "metricopt.detection.head",
    },
)

"""A user's own metric of detections."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from metricopt.detection.detections import USUAL, Kept, detections
from metricopt.detection.truths import are_truths, present
from metricopt.errors import DataError
from metricopt.metrics.base import Metric

Boxes = dict[str, Tensor]
"""Boxes of one image: `boxes` [n, 4] in pixels and `labels` [n] from 1 on; detections
also have `scores` [n], objects `difficult` [n]."""


class DetectionMetric(Metric):
    """A black box of detections and objects, as torchmetrics' detection metrics are.

    Args:
        function: from the detections of N images and their objects, each a list of
            dictionaries in torchvision's form, to a number.
        name: name in messages; by default the name of the function.
        higher_is_better: direction of the metric.
        low, high: range of the metric.
        kept: which detections the function sees.

    Raises:
        DataError: by `value`, if targets are not packed objects.
    """

    reads = "detections"
    shape = "[N, P, 5 C + 6]"

    def __init__(
        self,
        function: Callable[[list[Boxes], list[Boxes]], object],
        *,
        name: str | None = None,
        higher_is_better: bool = True,
        low: float = 0.0,
        high: float = 1.0,
        kept: Kept = USUAL,
    ) -> None:
        usual = str(getattr(function, "__name__", type(function).__name__))
        self.name = name or usual
        self.higher_is_better, self.low, self.high = higher_is_better, low, high
        self._function, self._kept = function, kept

    def _value(self, outputs: Tensor, targets: Any) -> object:
        if not are_truths(targets):
            raise DataError(
                f"metric {self.name!r} needs the objects of images as `pack_truths` "
                f"gives them, got a {type(targets).__name__}"
            )
        found = detections(outputs.detach(), self._kept)
        seen: list[Boxes] = []
        for place in range(len(outputs)):
            own = found.at((found.image == place).nonzero()[:, 0])
            seen.append({"boxes": own.box, "labels": own.label, "scores": own.score})
        return self._function(seen, _objects(targets))


def _objects(truths: Tensor) -> list[Boxes]:
    parts = [row[present(row)] for row in truths]
    return [
        {"boxes": part[:, :4], "labels": part[:, 4].long(), "difficult": part[:, 5] > 0}
        for part in parts
    ]

"""Metrics of detected objects: average precision by three conventions, or one's own."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor

from metricopt.detection.curves import Curves, judged
from metricopt.detection.detections import USUAL, Kept, Rule, detections
from metricopt.detection.truths import CROWD, DIFFICULT, are_truths, present
from metricopt.errors import ConfigError, DataError, MetricError, described
from metricopt.metrics.base import METRICS, Metric
from metricopt.reading.outputs import Targets


class AveragePrecision50(Metric):
    """Mean over the classes of the average precision at an overlap of 0.5, in [0, 1].

    Outputs are those of regions, packed; see `metricopt.detection.region_outputs`.
    They become detections as in torchvision: scores above 0.05, non-maximum suppression
    at 0.5, at most 100 of an image. A class without an object that counts is left out.

    Args:
        label: the one class that is judged, from 1 on; None for the mean of all.
        score: least score of a detection.

    Raises:
        ConfigError: if the label is less than 1.
        DataError: by `value`, if targets are not packed objects, a label is no class,
            or no object counts.
        MetricError: by `value`, if an output is not finite.
    """

    higher_is_better = True
    reads = "detections"
    shape = "[N, P, 5 C + 6]"
    convention: str
    rule: Rule = "voc"

    def __init__(self, label: int | None = None, score: float = 0.05) -> None:
        if label is not None and label < 1:
            raise ConfigError(f"label must be at least 1, got {label}")
        self.label = label
        self.kept = Kept(score)
        own = "" if label is None else f"/{label}"
        self.name = f"{self.convention}{own}"

    @abstractmethod
    def _average(self, found: Curves) -> Tensor:
        """Return the average precision of every row and class, shape [B, C]."""

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(self._values(outputs[None], targets)[0])

    def _values(self, outputs: Tensor, targets: Targets) -> Tensor:
        truths = self._checked_truths(outputs, targets)
        curves, _ = judged(outputs, truths, kept=self.kept, rule=self.rule)
        averages, known = self._average(curves), curves.objects > 0
        if self.label is not None:
            place = slice(self.label - 1, self.label)
            averages, known = averages[:, place], known[:, place]
        if not bool(known.any(1).all()):
            what = "an object that counts" if self.label is None else "one of its class"
            raise DataError(f"metric {self.name!r} needs {what}, got none")
        return (averages * known).sum(1) / known.sum(1)

    def _checked_truths(self, outputs: Tensor, targets: Targets) -> Tensor:
        if not are_truths(targets):
            raise DataError(
                f"metric {self.name!r} needs the objects of images as `pack_truths` "
                f"gives them, [N, G, 6], got {described(targets)}"
            )
        assert isinstance(targets, Tensor)
        if not bool(outputs.isfinite().all()):
            raise MetricError(f"metric {self.name!r} got outputs with nan or infinity")
        classes, greatest = (outputs.shape[-1] - 6) // 5, int(targets[..., 4].max())
        if greatest > classes or (self.label or 1) > classes:
            raise DataError(
                f"metric {self.name!r} needs labels up to {classes}, the classes of "
                f"the detector, got {max(greatest, self.label or 1)}"
            )
        return targets


@METRICS.register("ap50")
class VOC07AveragePrecision(AveragePrecision50):
    """The 11-point average precision of PASCAL VOC 2007; see the base class.

    Source: Everingham et al., IJCV 2010, Eq. (1) and (2).
    """

    convention = "ap50"

    def _average(self, found: Curves) -> Tensor:
        return found.eleven_points()


@METRICS.register("ap50-area")
class AreaAveragePrecision(AveragePrecision50):
    """The area under the monotone curve, as in PASCAL VOC 2010 and later."""

    convention = "ap50-area"

    def _average(self, found: Curves) -> Tensor:
        return found.area()


@METRICS.register("ap50-coco")
class COCOAveragePrecision(AveragePrecision50):
    """AP50 of COCO: 101 recalls, objects taken from the surest detection on.

    Difficult objects are ignored, and so is what lies in a crowd by half.

    Source: Lin et al., ECCV 2014, and its evaluation code.
    """

    convention, rule = "ap50-coco", "coco"

    def _average(self, found: Curves) -> Tensor:
        return found.coco()


Boxes = dict[str, Tensor]
"""Boxes of one image: `boxes` [n, 4] in pixels and `labels` [n] from 1 on; detections
also have `scores` [n], objects `difficult` [n] and `iscrowd` [n]."""


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
        {
            "boxes": part[:, :4],
            "labels": part[:, 4].long(),
            "difficult": part[:, 5] == DIFFICULT,
            "iscrowd": part[:, 5] == CROWD,
        }
        for part in parts
    ]

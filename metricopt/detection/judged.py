"""Outputs of regions judged: found, matched with objects, and put into curves."""

import torch
from torch import Tensor

from metricopt.detection.curves import Curves, curves, objects_of
from metricopt.detection.detections import USUAL, Detections, Kept, detections
from metricopt.detection.matching import Rule, matched
from metricopt.detection.region_outputs import region_outputs
from metricopt.reading.outputs import Remembered


@torch.no_grad()
def judged(
    outputs: Tensor,
    truths: Tensor,
    weights: Tensor | None = None,
    *,
    kept: Kept = USUAL,
    overlap: float = 0.5,
    rule: Rule = "voc",
) -> tuple[Curves, Detections]:
    """Return the curves of B rows, and the detections they are made of.

    Rows that are one tensor expanded are judged once, and what was asked for last is
    remembered: several metrics of the same outputs cost one pass.

    Args:
        outputs: outputs of the regions of N images, packed, shape [B, N, P, 5 C + 6].
        truths: objects of the images, shape [N, G, 6].
        weights: weights of the images in every row, shape [B, N]; None weighs all
            alike.
        kept: which detections are kept.
        overlap: intersection over union from which a detection is right.
        rule: see `matching.matched`.
    """
    how = (kept, overlap, rule)
    known = None if weights is not None else _LAST.find(outputs, truths, how)
    if known is None:
        known = _judged(outputs, truths, weights, kept, overlap, rule)
        if weights is None:
            _LAST.keep(outputs, truths, known, how)
    return known


def _judged(
    outputs: Tensor,
    truths: Tensor,
    weights: Tensor | None,
    kept: Kept,
    overlap: float,
    rule: Rule,
) -> tuple[Curves, Detections]:
    rows, images = outputs.shape[:2]
    classes = region_outputs(outputs).classes
    if weights is None:
        weights = outputs.new_ones(rows, images)
    alike = rows > 1 and outputs.stride(0) == 0
    different = outputs[:1] if alike else outputs
    found = detections(different.flatten(0, 1), kept)
    repeated = truths.to(outputs).repeat(len(different), 1, 1)
    flags = matched(found, repeated, overlap=overlap, rule=rule)
    weights = weights.to(outputs).double()
    objects = objects_of(truths.to(outputs), classes, weights)
    made = curves(found, flags, weights, objects, rows=len(different))
    return made, found


_LAST: Remembered[tuple[Curves, Detections]] = Remembered()

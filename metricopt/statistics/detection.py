"""Statistics of detection: precision over recall of every class, exact and smooth.

Average precision, whatever the convention, is linear in the precisions at some recalls;
other metrics of detections depend on hits and false alarms above thresholds.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.detection.curves import ELEVEN, Curves, judged
from metricopt.detection.detections import Detections
from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import are_truths, counted, present
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics

BETWEEN = tuple(0.05 + step / 10 for step in range(10))
RECALLS = tuple(sorted((*ELEVEN, *BETWEEN)))
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Scores above which hits and false alarms are counted."""
SMOOTHNESS = 0.3
"""Width of the smooth step at a threshold, in units of the log odds."""
SMALL = 1e-12


@STATISTICS.register("detections")
@dataclass(frozen=True)
class DetectionStatistics(Statistics):
    """Precisions at recalls, and rates of hits and false alarms at scores, by class.

    Which boxes remain after non-maximum suppression, and which of them are right, is
    found anew for every network. For the gradient it is fixed: smooth statistics move
    with the scores alone.
    """

    name = "detections"
    near = "rates"

    @property
    def reads(self) -> Reads:
        """What outputs are: regions of a detector."""
        return "detections"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there is an object."""
        return are_truths(targets) and bool(present(targets).any())

    def sizes(self, targets: Tensor) -> dict[str, int]:
        """Return how many objects count, and how many images hold them."""
        return {"objects": int(counted(targets).sum()), "images": len(targets)}

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of packed outputs [B, N, P, 5 C + 6] and objects [N, G, 6].

        They are smooth in the scores if wanted; weights [B, N] are of images.
        """
        curves, found = judged(outputs, targets, weights)
        scores = _log_odds(outputs, found)
        if smooth:
            precisions = _smooth_precisions(curves, scores)
        else:
            precisions = curves.precisions_at(RECALLS)
        # Of a class without an object nothing is known.
        known = (curves.objects > 0)[..., None]
        precisions = precisions * known
        classes = known.sum(1).clamp(min=1)
        hits, alarms = _above(curves, scores, smooth=smooth)
        objects = curves.objects[..., None].clamp_min(SMALL)
        rates = torch.cat([hits / objects, alarms / (alarms + objects)], -1) * known
        return {
            "precisions": precisions.flatten(1).double(),
            "mean precisions": (precisions.sum(1) / classes).double(),
            "rates": rates.flatten(1).double(),
        }


def _log_odds(outputs: Tensor, found: Detections) -> Tensor:
    """Return the log odds of every detection's class, differentiable, shape [D]."""
    flat = outputs[:1] if outputs.stride(0) == 0 else outputs
    logits = region_outputs(flat.flatten(0, 1)).logits
    own = logits[found.image, found.region]
    label = found.label[:, None]
    others = own.scatter(1, label, -torch.inf).logsumexp(1)
    return own.gather(1, label)[:, 0] - others


def _nothing(curves: Curves, scores: Tensor, count: int) -> Tensor:
    """Return what no detection gives, zeros [B, C, J] with a gradient of 0."""
    zeros = curves.hits.new_zeros(*curves.objects.shape, count)
    return zeros + scores.sum()


def _steps(scores: Tensor, thresholds: Tensor, *, smooth: bool) -> Tensor:
    """Return how far scores [..., L] are above thresholds [..., J], [..., J, L]."""
    above = scores[..., None, :] - thresholds[..., None]
    if smooth:
        return (above / SMOOTHNESS).sigmoid()
    return (above > 0).to(scores)


def _above(curves: Curves, scores: Tensor, *, smooth: bool) -> tuple[Tensor, Tensor]:
    """Return the weights of hits and of false alarms above scores, each [B, C, J]."""
    if not len(scores):
        nothing = _nothing(curves, scores, len(THRESHOLDS))
        return nothing, nothing
    own = scores[curves.place]
    thresholds = own.new_tensor([math.log(t / (1 - t)) for t in THRESHOLDS])
    steps = _steps(own, thresholds, smooth=smooth).to(curves.hits)
    both = (curves.hits, curves.alarms)
    hits, alarms = (torch.einsum("bcjl,bcl->bcj", steps, part) for part in both)
    return hits, alarms


def _smooth_precisions(curves: Curves, scores: Tensor) -> Tensor:
    """Return precisions at recalls that move with the scores, [B, C, J].

    The greatest precision from a recall on stays at the same detection: false alarms
    are counted above its score, hits up to its recall.
    """
    if not len(scores):
        return _nothing(curves, scores, len(RECALLS))
    _, where = curves.best()
    reached = curves.reached(RECALLS)
    length = where.shape[-1]
    place = where.gather(-1, reached.clamp(max=length - 1))
    own = scores[curves.place]
    thresholds = own.gather(-1, place)
    steps = _steps(own, thresholds, smooth=True).to(curves.hits)
    hits = curves.hits.cumsum(-1).gather(-1, place)
    alarms = torch.einsum("bcjl,bcl->bcj", steps, curves.alarms)
    return hits / (hits + alarms + SMALL) * (reached < length)

"""Metrics of poses: shares of joints near enough, and average precision of persons."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, described
from metricopt.metrics.base import METRICS, Metric, check_outputs
from metricopt.reading.outputs import Targets
from metricopt.structured.poses import (
    are_poses,
    check_maps,
    decoded,
    distances,
    labelled,
    similarities,
)

COCO = (
    *(0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072),
    *(0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089),
)
"""Spreads of the 17 key points of COCO: Lin et al., ECCV 2014."""
LEEDS = (
    *(0.089, 0.087, 0.107, 0.107, 0.087, 0.089),
    *(0.062, 0.072, 0.079, 0.079, 0.072, 0.062, 0.079, 0.079),
)
"""Spreads of CrowdPose, in the order of the 14 joints of Leeds Sports Pose."""
SIGMAS = {len(each): each for each in (COCO, LEEDS)}
THRESHOLDS = tuple(0.5 + step / 20 for step in range(10))
"""Similarities from which on a person is found."""
RECALLS = 101


class PoseMetric(Metric):
    """A metric of heat maps [N, J, H, W] against packed poses [N, J + 1, 3].

    Raises:
        DataError: by `value`, if targets are not packed poses, or none is labelled.
        ShapeError: by `value`, if the maps are of another number of joints.
        MetricError: by `value`, if an output is NaN.
    """

    higher_is_better = True
    reads = "poses"
    shape = "[N, J, H, W]"

    def _value(self, outputs: Tensor, targets: Any) -> float:
        return float(self._values(outputs[None], targets)[0])

    def _poses(self, outputs: Tensor, targets: Targets) -> Tensor:
        """Return the targets, checked."""
        if not isinstance(targets, Tensor) or not are_poses(targets):
            raise DataError(
                f"metric {self.name!r} needs poses as `pack_poses` gives them, "
                f"[N, J + 1, 3], got {described(targets)}"
            )
        check_maps(outputs, targets)
        check_outputs(self.name, outputs)
        if not bool(labelled(targets).any()):
            raise DataError(f"metric {self.name!r} needs a labelled joint, got none")
        return targets


@METRICS.register("pck")
class CorrectKeypoints(PoseMetric):
    """Share of the labelled joints nearer than a share of the reference length.

    All labelled joints of all persons count alike.

    Args:
        within: the share, 0.2 for PCK@.2.

    Raises:
        ConfigError: if the share is not positive.

    Source: Yang and Ramanan, TPAMI 2013.
    """

    name = "pck"

    def __init__(self, within: float = 0.2) -> None:
        if not within > 0:
            raise ConfigError(f"within must be positive, got {within}")
        self.within = within

    def _values(self, outputs: Tensor, targets: Targets) -> Tensor:
        poses = self._poses(outputs, targets)
        points, _ = decoded(outputs)
        near = (distances(points, poses) < self.within) & labelled(poses)
        return near.sum((1, 2)).double() / int(labelled(poses).sum())


@METRICS.register("oks-ap")
class SimilarityAP(PoseMetric):
    """Average precision of persons over object key point similarities .5 to .95.

    Each image has one person and one detection, whose score is the mean of the largest
    values of its maps. Persons without a labelled joint are left out.

    Args:
        sigmas: spread of every joint; None for those of the 17 joints of COCO or the 14
            of Leeds Sports Pose, whichever the maps are of.

    Raises:
        ConfigError: by `value`, if the spreads are of another number of joints, or of
            none that is known.

    Source: Lin et al., ECCV 2014, and its evaluation code: 101 recalls.
    """

    name = "oks-ap"

    def __init__(self, sigmas: Sequence[float] | None = None) -> None:
        self.sigmas = sigmas

    def _values(self, outputs: Tensor, targets: Targets) -> Tensor:
        poses = self._poses(outputs, targets)
        sigmas = sigmas_of(outputs.shape[2], self.sigmas).to(outputs.device)
        points, sure = decoded(outputs)
        known = labelled(poses).any(1)
        found = similarities(points, poses, sigmas)[:, known]
        scores = sure.mean(-1)[:, known]
        return average_precisions(found, scores).mean(1)


def sigmas_of(joints: int, given: Sequence[float] | None = None) -> Tensor:
    """Return the spreads of joints, float64, shape [J].

    Raises:
        ConfigError: if those given are of another number of joints, or none is known.
    """
    if given is not None and len(given) != joints:
        raise ConfigError(f"expected {joints} sigmas, one a joint, got {len(given)}")
    if given is None and joints not in SIGMAS:
        known = " or ".join(map(str, sorted(SIGMAS)))
        raise ConfigError(
            f"sigmas are known of {known} joints, got {joints}: give one a joint"
        )
    return torch.tensor(given or SIGMAS[joints], dtype=torch.float64)


def average_precisions(found: Tensor, scores: Tensor) -> Tensor:
    """Return the average precision at every threshold, float64, shape [B, T].

    Args:
        found: similarity of the detection of every person, shape [B, N].
        scores: its score, shape [B, N].
    """
    order = scores.argsort(dim=1, descending=True, stable=True)
    ranked = found.gather(1, order)
    levels = ranked.new_tensor(THRESHOLDS)[None, :, None]
    hits = (ranked[:, None] >= levels).double().cumsum(-1)  # [B, T, N]
    count = ranked.shape[1]
    precision = hits / torch.arange(1, count + 1).to(hits)
    envelope = precision.flip(-1).cummax(-1)[0].flip(-1)
    # Rounded as in the evaluation code: some recalls are reached exactly.
    recalls = (torch.arange(RECALLS).to(hits) * 0.01).clamp(max=1)
    wanted = recalls.expand(*hits.shape[:2], -1).contiguous()
    places = torch.searchsorted((hits / count).contiguous(), wanted)
    reached = places < count
    values = envelope.gather(-1, places.clamp(max=count - 1)) * reached
    return values.mean(-1)

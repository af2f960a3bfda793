"""Curves of precision over recall, and the averages of precision the benchmarks take.

Everything is batched over rows, which differ in their detections or in the weights of
the images: folds and bootstrap samples cost no more than that.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from metricopt.detection.detections import (
    ALARM,
    HIT,
    USUAL,
    Detections,
    Kept,
    Rule,
    detections,
    matched,
    rank_within,
)
from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import counted
from metricopt.reading.outputs import Remembered

SMALL = 1e-12
ELEVEN = tuple(step / 10 for step in range(11))
HUNDRED_AND_ONE = tuple(step / 100 for step in range(101))


@dataclass(frozen=True)
class Curves:
    """The detections of C classes in B rows, from the surest on.

    Attributes:
        place: place of each in the detections, int64, shape [B, C, L]; those of a class
            with fewer are filled up by any.
        hits, alarms: weights of the detections that are right, and wrong, shape
            [B, C, L]; 0 for those filled up or ignored.
        objects: weight of the objects of the class, shape [B, C].
    """

    place: Tensor
    hits: Tensor
    alarms: Tensor
    objects: Tensor

    @property
    def recalls(self) -> Tensor:
        """Share of the objects found up to every detection, [B, C, L]."""
        return self.hits.cumsum(-1) / self.objects[..., None].clamp_min(SMALL)

    @property
    def precisions(self) -> Tensor:
        """Share of hits up to every detection, shape [B, C, L]."""
        hits, alarms = self.hits.cumsum(-1), self.alarms.cumsum(-1)
        return hits / (hits + alarms).clamp_min(SMALL)

    def best(self) -> tuple[Tensor, Tensor]:
        """Return the greatest precision from every detection on, and where it is."""
        flipped = self.precisions.flip(-1).cummax(-1)
        last = flipped.values.shape[-1] - 1
        return flipped.values.flip(-1), last - flipped.indices.flip(-1)

    def reached(self, levels: tuple[float, ...]) -> Tensor:
        """Return where recalls are reached first, [B, C, J]; L where they are not."""
        wanted = self.recalls.new_tensor(levels) - 1e-9
        wanted = wanted.expand(*self.recalls.shape[:2], -1).contiguous()
        return torch.searchsorted(self.recalls.contiguous(), wanted)

    def precisions_at(self, levels: tuple[float, ...]) -> Tensor:
        """Return the greatest precision at these recalls or more, [B, C, J].

        0 where no detection reaches them.
        """
        best, _ = self.best()
        return pad(best, (0, 1)).gather(-1, self.reached(levels))

    def eleven_points(self) -> Tensor:
        """Return the average precision of PASCAL VOC 2007, shape [B, C].

        Source: Everingham et al., IJCV 2010, Eq. (1) and (2).
        """
        return self.precisions_at(ELEVEN).mean(-1)

    def coco(self) -> Tensor:
        """Return the average precision of COCO, at 101 recalls, shape [B, C]."""
        return self.precisions_at(HUNDRED_AND_ONE).mean(-1)

    def area(self) -> Tensor:
        """Return the area under the monotone curve, as in VOC 2010 on, [B, C]."""
        best, _ = self.best()
        return (best * self.hits).sum(-1) / self.objects.clamp_min(SMALL)


def curves(
    found: Detections, flags: Tensor, weights: Tensor, objects: Tensor, *, rows: int
) -> Curves:
    """Return the curves of B rows of the same N images.

    Detections [D] are in `rows` times N images, those of row 0 first; `rows` is B, or 1
    if all rows have the same. Their flags are those of `matched`. Weights of the images
    are [B, N], of the objects of every class [B, C].
    """
    images, classes = weights.shape[1], objects.shape[1]
    group = found.image // images * classes + found.label - 1
    order = found.score.argsort(descending=True, stable=True)
    order = order[group[order].argsort(stable=True)]
    group = group[order]
    rank = rank_within(group)
    longest = int(rank.max()) + 1 if len(rank) else 1
    place = torch.zeros(rows * classes, longest, dtype=torch.long, device=group.device)
    known = torch.zeros_like(place, dtype=torch.bool)
    place[group, rank], known[group, rank] = order, True
    whole = (len(weights), classes, longest)
    place, known = (
        part.view(rows, classes, longest).expand(whole) for part in (place, known)
    )
    if not len(order):
        nothing = weights.new_zeros(whole)
        return Curves(place, nothing, nothing, objects)
    every = torch.arange(len(weights), device=group.device)[:, None, None]
    weight = weights[every, (found.image % images)[place]] * known
    flag = flags[place]
    return Curves(place, weight * (flag == HIT), weight * (flag == ALARM), objects)


def objects_of(truths: Tensor, classes: int, weights: Tensor) -> Tensor:
    """Return the weight [B, C] of the objects that count, by class.

    Objects of N images are [N, G, 6], weights of the images [B, N].
    """
    labels = truths[..., 4].long() * counted(truths)
    every = torch.arange(1, classes + 1, device=truths.device)
    counts = (labels[..., None] == every).sum(1)  # [N, C]
    return weights @ counts.to(weights)


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
    remembered: several metrics of the same outputs cost one pass. Outputs of the
    regions of N images are packed, [B, N, P, 5 C + 6], objects [N, G, 6]; weights of
    the images in every row are [B, N]. A detection is right from an overlap on, by a
    rule of `matched`.
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

"""What fine-tuning a detector's box head follows: classes and boxes of its regions."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, smooth_l1_loss

from metricopt.detection.detections import intersection_over_union
from metricopt.detection.region_outputs import RegionOutputs, region_outputs
from metricopt.detection.truths import single
from metricopt.errors import DataError

FOREGROUND = 0.5
"""Overlap with an object from which a region is to find it."""
CODE_WEIGHTS = (10.0, 10.0, 5.0, 5.0)
"""Weights of the offsets of a box in the loss."""
BETA = 1 / 9


class DetectionLoss(nn.Module):
    """Loss of the classes of regions, and of the boxes of those that hold an object.

    Here the former is cross-entropy over all regions; a subclass may take another.

    Source: Ren et al., NeurIPS 2015, Eq. (1), with the constants of torchvision.
    Differs: all regions count, none are sampled; boxes are cut at the edges of the
    image before they are compared.
    """

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of n images, outputs [n, P, 5 C + 6] and objects [n, G, 6].

        Raises:
            ShapeError: if outputs are not packed.
            DataError: if an object is of a class the detector does not have.
        """
        return self.row_losses(outputs[None], targets[None])[0]

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the losses [B] of outputs [B, n, P, 5 C + 6], objects [B, n, G, 6]."""
        found = region_outputs(outputs)
        greatest = int(targets[..., 4].max())
        if greatest > found.classes:
            raise DataError(
                f"a detector of {found.classes} classes needs labels from 1 to "
                f"{found.classes}, got {greatest}"
            )
        overlaps = intersection_over_union(found.proposals, targets[..., :4])
        overlaps = overlaps.masked_fill(~single(targets)[..., None, :], 0.0)
        best, place = overlaps.max(-1)
        index = place[..., None].expand(*place.shape, targets.shape[-1])
        nearest = targets.gather(-2, index)
        labels = nearest[..., 4].long() * (best >= FOREGROUND)
        return self._of_classes(found, labels) + _of_boxes(found, labels, nearest)

    def _of_classes(self, found: RegionOutputs, labels: Tensor) -> Tensor:
        """Return the loss of the logits, with labels [B, n, P], shape [B]."""
        every = cross_entropy(found.logits.movedim(-1, 1), labels, reduction="none")
        return _mean(every, found.present)


def _of_boxes(found: RegionOutputs, labels: Tensor, nearest: Tensor) -> Tensor:
    """Return the loss of the boxes of the right class, shape [B]."""
    objects = (labels > 0) & found.present
    own = (labels - 1).clamp(min=0)[..., None, None]
    boxes = found.boxes.gather(-2, own.expand(*own.shape[:-1], 4))[..., 0, :]
    said = _codes(boxes, found.proposals)
    wanted = _codes(nearest[..., :4], found.proposals)
    each = smooth_l1_loss(said, wanted, beta=BETA, reduction="none").sum(-1)
    return _mean(torch.where(objects, each, 0.0), found.present)


def _codes(boxes: Tensor, proposals: Tensor) -> Tensor:
    """Return boxes [..., 4] as offsets from proposals [..., 4], weighted."""
    size, middle = _size_and_middle(boxes)
    size_of, middle_of = _size_and_middle(proposals)
    codes = torch.cat([(middle - middle_of) / size_of, (size / size_of).log()], -1)
    return codes * codes.new_tensor(CODE_WEIGHTS)


def _size_and_middle(boxes: Tensor) -> tuple[Tensor, Tensor]:
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1.0)
    return size, boxes[..., :2] + size / 2


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    count = chosen.sum((-2, -1)).clamp(min=1)
    found: Tensor = (values * chosen).sum((-2, -1)) / count
    return found

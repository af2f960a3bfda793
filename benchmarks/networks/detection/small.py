"""Faster R-CNN on one small feature map, for runs on a CPU."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from torch import nn

from benchmarks.networks.contract import Pretrained
from benchmarks.networks.detection.contract import (
    DETECTORS,
    Detector,
    TorchvisionDetector,
)

RATIOS = (0.7, 1.0, 1.4)
"""Heights of anchors by their widths."""


@dataclass(frozen=True)
class _Form:
    """What decides a small detector, beside its features.

    Attributes:
        channels: channels of the feature map.
        sides: least and greatest side that images are scaled to.
        anchors: their sizes, in pixels of the scaled image.
        pooled: cells of a side of a region.
        hidden: width of both layers of the box head.
        regions: likeliest regions of an image before non-maximum suppression, and
            after it.
    """

    channels: int
    sides: tuple[int, int]
    anchors: tuple[int, ...]
    pooled: int
    hidden: int
    regions: tuple[int, int] = (1_000, 300)


@DETECTORS.register("squeezenet1_1")
def squeezenet1_1(classes: int) -> Detector:
    """Return a Faster R-CNN on SqueezeNet 1.1 up to stride 8, 1.1 million weights.

    Images are scaled to 240 x 320 pixels. One level of anchors suits cells, all of
    which are between a twelfth and a third of the image wide.

    Source: Ren et al., NeurIPS 2015; Iandola et al., arXiv:1602.07360, 2016.
    """
    # Not above: a look-up of any network imports this file, and torchvision takes
    # seconds to import.
    from torchvision.models import squeezenet1_1

    stages = squeezenet1_1(weights=None).features[:8]
    reduced = nn.Sequential(nn.Conv2d(256, 128, 1), nn.ReLU())
    backbone: Any = nn.Sequential(OrderedDict(features=stages, reduced=reduced))
    later = tuple(f"features.{place}" for place in range(8, 13))
    backbone.pretrained = Pretrained(
        "SqueezeNet1_1_Weights.IMAGENET1K_V1", ("classifier", *later), ("reduced",)
    )
    form = _Form(128, (240, 320), (20, 30, 45, 68, 100), pooled=7, hidden=128)
    return _faster_rcnn("SqueezeNet 1.1 to stride 8", backbone, classes, form)


@DETECTORS.register("tiny")
def tiny(classes: int) -> Detector:
    """Return a Faster R-CNN on three convolutions, for smoke runs at 64 x 96 pixels."""
    stages: list[nn.Module] = []
    for before, width in ((3, 16), (16, 32), (32, 32)):
        stages += [nn.Conv2d(before, width, 3, 2, 1), nn.ReLU()]
    form = _Form(32, (64, 96), (12, 16, 24), pooled=4, hidden=32, regions=(200, 50))
    return _faster_rcnn("three convolutions", nn.Sequential(*stages), classes, form)


def _faster_rcnn(
    name: str, backbone: nn.Sequential, classes: int, form: _Form
) -> Detector:
    """Return a detector with one level of anchors and a small box head."""
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
    from torchvision.ops import MultiScaleRoIAlign

    whole: Any = backbone
    whole.out_channels = form.channels
    network = FasterRCNN(
        backbone,
        min_size=form.sides[0],
        max_size=form.sides[1],
        rpn_anchor_generator=AnchorGenerator((form.anchors,), (RATIOS,)),
        box_roi_pool=MultiScaleRoIAlign(["0"], form.pooled, 2),
        box_head=TwoMLPHead(form.channels * form.pooled**2, form.hidden),
        box_predictor=FastRCNNPredictor(form.hidden, classes + 1),
        rpn_pre_nms_top_n_train=form.regions[0],
        rpn_pre_nms_top_n_test=form.regions[0],
        rpn_post_nms_top_n_train=form.regions[1],
        rpn_post_nms_top_n_test=form.regions[1],
        rpn_batch_size_per_image=128,
        box_batch_size_per_image=64,
    )
    return TorchvisionDetector(network, backbone, f"Faster R-CNN, {name}")

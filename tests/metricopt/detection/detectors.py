"""A small torchvision detector with random weights, and images with objects."""

import torch
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import (
    FastRCNNConvFCHead,
    FastRCNNPredictor,
    TwoMLPHead,
)
from torchvision.ops import MultiScaleRoIAlign

from tests.metricopt.drawn import seeded

CLASSES = 2


def detector(*, convolutions=False, seed=0):
    """A Faster R-CNN of two classes on maps of 8 channels; boxes are of any size."""
    torch.manual_seed(seed)
    backbone = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4, padding=2), nn.ReLU())
    backbone.out_channels = 8
    pool = MultiScaleRoIAlign(["0"], output_size=3, sampling_ratio=2)
    head = TwoMLPHead(8 * 9, 16)
    if convolutions:
        head = FastRCNNConvFCHead((8, 3, 3), [8], [16])
    found = FasterRCNN(
        backbone,
        min_size=48,
        max_size=96,
        rpn_anchor_generator=AnchorGenerator(((8, 16, 32),), ((0.5, 1.0, 2.0),)),
        box_roi_pool=pool,
        box_head=head,
        box_predictor=FastRCNNPredictor(16, CLASSES + 1),
        rpn_post_nms_top_n_test=30,
    )
    for weight in found.roi_heads.box_predictor.parameters():
        nn.init.normal_(weight, std=0.5)
    return found.eval()


def images(count=6, seed=0):
    """Pairs of an image of its own size and its objects."""
    generator = seeded(seed)
    found = []
    for number in range(count):
        high, wide = 40 + 4 * number, 64
        corner = torch.rand(2, 2, generator=generator) * 20
        size = 10 + torch.rand(2, 2, generator=generator) * 8
        target = {
            "boxes": torch.cat([corner, corner + size], 1),
            "labels": torch.randint(1, CLASSES + 1, (2,), generator=generator),
        }
        found.append((torch.rand(3, high, wide, generator=generator), target))
    return found

"""Faster R-CNN with ResNet-50 and a feature pyramid, as torchvision builds it."""

from typing import Any

from benchmarks.networks.contract import Pretrained
from benchmarks.networks.detection.contract import (
    DETECTORS,
    Detector,
    TorchvisionDetector,
)

SIDES = (480, 800)
"""Least and greatest side in pixels: images of PASCAL VOC are about 375 x 500."""


@DETECTORS.register("resnet50-fpn")
def resnet50_fpn(classes: int) -> Detector:
    """Return the detector, 41 million weights; images are scaled to 480 x 640 or so.

    Source: Ren et al., NeurIPS 2015; Lin et al., CVPR 2017. The paper's own network is
    R50-C4 of detectron2.
    """
    # Not above: a look-up of any network imports this file, and torchvision takes
    # seconds to import.
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.ops import FrozenBatchNorm2d

    # Weights for ImageNet are put in later, so batch norm has to be frozen by hand.
    backbone: Any = resnet_fpn_backbone(
        backbone_name="resnet50", weights=None, norm_layer=FrozenBatchNorm2d
    )
    trunk = backbone.body
    trunk.pretrained = Pretrained("ResNet50_Weights.IMAGENET1K_V1", ("fc",), ())
    network = FasterRCNN(backbone, classes + 1, min_size=SIDES[0], max_size=SIDES[1])
    return TorchvisionDetector(network, trunk, "Faster R-CNN, ResNet-50 with FPN")

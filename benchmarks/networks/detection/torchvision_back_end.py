"""Detectors of torchvision behind the contract."""

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.networks.detection.contract import Detector, Scene
from metricopt.detection.head import DetectorHead


class TorchvisionDetector(Detector):
    """A Faster R-CNN of torchvision.

    Args:
        network: a `torchvision.models.detection.FasterRCNN`.
        trunk: part of it that may start from weights for ImageNet.
        name: name of the network.
    """

    def __init__(self, network: nn.Module, trunk: nn.Module, name: str) -> None:
        super().__init__()
        self.network: Any = network
        # In a tuple: its weights are already those of the network.
        self._trunk = (trunk,)
        self.back_end = f"torchvision, {name}"

    @property
    def trunk(self) -> nn.Module:
        """The stages that an image network has, too."""
        return self._trunk[0]

    def forward(self, scene: Scene) -> tuple[Tensor, Tensor, Tensor]:
        """Sample regions of images; see `Detector.forward`.

        The steps are those of torchvision in training, except that the loss of the
        classes is left to the caller.
        """
        # Not above: a look-up of any network imports this file.
        from torchvision.models.detection.roi_heads import fastrcnn_loss

        network, heads = self.network, self.network.roi_heads
        seen, targets = network.transform(*scene)
        features = self._features(seen.tensors)
        proposals, losses = network.rpn(seen, features, targets)
        sampled = heads.select_training_samples(proposals, targets)
        proposals, _, labels, offsets = sampled
        pooled = heads.box_roi_pool(features, proposals, seen.image_sizes)
        logits, boxes = heads.box_predictor(heads.box_head(pooled))
        _, of_boxes = fastrcnn_loss(logits, boxes, labels, offsets)
        return logits, torch.cat(labels), of_boxes + sum(losses.values())

    def head(self, proposals: int) -> DetectorHead:
        """Return the box head; see `Detector.head`."""
        return DetectorHead(self.network, proposals)

    def _features(self, images: Tensor) -> dict[str, Tensor]:
        found = self.network.backbone(images)
        return {"0": found} if isinstance(found, Tensor) else found

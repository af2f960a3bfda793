"""The contract of a detector, whichever package it is built of: its back end.

Detectors compute losses in their forward pass and return lists of any length. Here a
forward pass for training returns what a loss of the classes needs, and the box head is
a network of its own, from regions of one shape to outputs of one shape.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from metricopt.detection.head import DetectorHead
from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

Scene = tuple[Sequence[Tensor], Sequence[Mapping[str, Tensor]]]
"""Images [3, H, W] in [0, 1] of any sizes, and the `boxes` and `labels` of each."""


class BoxHead(Protocol):
    """A network from regions [n, P, F] to packed outputs [n, P, 5 C + 6].

    Attributes:
        sites: where FiLM stands by default.
    """

    sites: tuple[str, ...]

    def regions(self, images: Sequence[Tensor]) -> Tensor:
        """Return all that the head needs of n images, shape [n, P, F]."""


class Detector(nn.Module, ABC):
    """A detector of two stages: proposals of regions, and the head that reads them.

    Attributes:
        back_end: the package it is built of, and the network as that package calls it.
        draws_globally: training samples regions by torch's global generator.
    """

    back_end: str
    draws_globally = True

    @property
    @abstractmethod
    def trunk(self) -> nn.Module:
        """The part that may start from weights for ImageNet; see `Pretrained`."""

    @abstractmethod
    def forward(self, scene: Scene) -> tuple[Tensor, Tensor, Tensor]:
        """Sample regions of images, as training does.

        Args:
            scene: images with their objects.

        Returns:
            Logits of R regions, the background first, [R, C + 1]; their labels, 0 for
            the background, [R]; and the loss of all but the classes, a scalar.
        """

    @abstractmethod
    def head(self, proposals: int) -> Any:
        """Return the box head, which shares the weights of the detector.

        Args:
            proposals: regions P of every image, the likeliest ones.

        Returns:
            An `nn.Module` that is a `BoxHead`; the detector is in evaluation mode.
        """


DETECTORS: Registry[Callable[[int], Detector]] = Registry(
    "detector", "benchmarks.networks.detection"
)
"""From a number of classes, without the background, to a detector."""


def build_detector(name: str, classes: int, seed: int) -> Detector:
    """Return a detector with random weights, drawn from a seed of its own.

    Args:
        name: name of a registered detector.
        classes: number of classes, without the background.
        seed: seed of the weights.

    Raises:
        ConfigError: if there is no such detector, no class, or its back end is not
            installed.
    """
    make = DETECTORS.get(name)
    if classes < 1:
        raise ConfigError(f"a detector needs 1 class or more, got {classes}")
    with globally_seeded(seed):
        return make(classes)


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

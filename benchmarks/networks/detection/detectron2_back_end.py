"""Faster R-CNN R50-C4 of detectron2, the paper's own detector, behind the contract.

detectron2 is not on the package index. It is found at run time; nothing else of the
suite needs it.
"""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from benchmarks.networks.contract import Pretrained
from benchmarks.networks.detection.contract import DETECTORS, Detector, Scene
from metricopt.detection.head import GEOMETRY, RegionReading, pack_regions
from metricopt.errors import ConfigError

INSTALL = (
    ".venv/bin/pip install 'setuptools<81' ninja",
    ".venv/bin/pip install --no-build-isolation "
    "'git+https://github.com/facebookresearch/detectron2'",
)
"""Commands that install it, about five minutes."""
CONFIG = "PascalVOC-Detection/faster_rcnn_R_50_C4.yaml"
SIDES = (480, 800)
"""Least and greatest side that photographs are scaled to."""
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STAGES = {"res2": "layer1", "res3": "layer2", "res4": "layer3", "res5": "layer4"}
"""Stages of detectron2's ResNet and those of torchvision's."""


@DETECTORS.register("r50-c4")
def r50_c4(classes: int) -> Detector:
    """Return the detector of the paper; images are scaled to 480 x 640 or so.

    Raises:
        ConfigError: if detectron2 is not installed, or cannot be imported.

    Source: Ren et al., NeurIPS 2015; detectron2's configuration for PASCAL VOC.
    Differs: the stride of a block is in its 3 x 3 convolution, as in torchvision's
    weights for ImageNet, from which it starts.
    """
    return Detectron2Detector(classes, SIDES, {}, "Faster R-CNN R50-C4")


@DETECTORS.register("r50-c4-narrow")
def r50_c4_narrow(classes: int) -> Detector:
    """Return the same with an eighth of the channels, for smoke runs at 64 x 96 pixels.

    Raises:
        ConfigError: if detectron2 is not installed, or cannot be imported.
    """
    narrow = {
        "MODEL.RESNETS.STEM_OUT_CHANNELS": 16,
        "MODEL.RESNETS.RES2_OUT_CHANNELS": 32,
        "MODEL.RESNETS.WIDTH_PER_GROUP": 8,
        "MODEL.ANCHOR_GENERATOR.SIZES": [[12, 16, 24]],
        "MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION": 4,
        "MODEL.ROI_HEADS.BATCH_SIZE_PER_IMAGE": 64,
        # Random weights cannot do with frozen statistics of batch norm.
        "MODEL.BACKBONE.FREEZE_AT": 0,
    }
    name = "Faster R-CNN R50-C4 with an eighth of the channels"
    return Detectron2Detector(classes, (64, 96), narrow, name)


class Detectron2Detector(Detector):
    """A Faster R-CNN of detectron2 with a box head of convolutions.

    The head of the contract begins after its convolutions, whose means over a region
    are all it needs: FiLM stands on these.

    Args:
        classes: number of classes, without the background.
        sides: least and greatest side that images are scaled to.
        changes: to the configuration, by dotted name.
        name: name of the network.
    """

    def __init__(
        self, classes: int, sides: tuple[int, int], changes: dict[str, Any], name: str
    ) -> None:
        super().__init__()
        check_installed()
        from torchvision.models.detection.transform import GeneralizedRCNNTransform

        self.network = _built(classes, changes)
        self.transform: Any = GeneralizedRCNNTransform(*sides, MEAN, DEVIATION)
        self.classes = classes
        self.back_end = f"detectron2, {name}"

    @property
    def trunk(self) -> nn.Module:
        """All stages of the ResNet, by the names that torchvision gives them."""
        return ResNetTrunk(self.network)

    def forward(self, scene: Scene) -> tuple[Tensor, Tensor, Tensor]:
        """Sample regions of images; see `Detector.forward`.

        The steps are those of detectron2 in training, except that the loss of the
        classes is left to the caller.
        """
        from detectron2.structures import Boxes, Instances
        from detectron2.utils.events import EventStorage

        seen, targets = self.transform(*map(list, scene))
        wanted = [
            Instances(size, gt_boxes=Boxes(one["boxes"]), gt_classes=one["labels"] - 1)
            for size, one in zip(seen.image_sizes, targets, strict=True)
        ]
        heads = self.network.roi_heads
        with EventStorage():  # both generators write their statistics to one
            features, proposals, losses = self._proposed(seen, wanted)
            sampled = heads.label_and_sample_proposals(proposals, wanted)
            boxes = [each.proposal_boxes for each in sampled]
            said = heads.box_predictor(self._vectors(features, boxes))
            of_boxes = heads.box_predictor.losses(said, sampled)["loss_box_reg"]
        labels = torch.cat([each.gt_classes for each in sampled])
        # Theirs have the background last.
        labels = (labels + 1) % (self.classes + 1)
        return said[0].roll(1, 1), labels, of_boxes + sum(losses.values())

    def head(self, proposals: int) -> "Detectron2Head":
        """Return the box head; see `Detector.head`."""
        return Detectron2Head(self, proposals)

    def regions(self, images: Sequence[Tensor], count: int) -> Tensor:
        """Return the vectors of the likeliest proposals, with their geometry."""
        from detectron2.structures import Boxes

        self.eval()
        seen, _ = self.transform(list(images))
        features, found, _ = self._proposed(seen, None)
        boxes = [each.proposal_boxes.tensor[:count] for each in found]
        vectors = self._vectors(features, [Boxes(each) for each in boxes])
        return pack_regions(vectors, boxes, images, seen.image_sizes, count)

    def _proposed(self, seen: Any, wanted: Any) -> tuple[Any, Any, dict[str, Tensor]]:
        from detectron2.structures import ImageList

        network = self.network
        features = network.backbone(seen.tensors)
        images = ImageList(seen.tensors, seen.image_sizes)
        found, losses = network.proposal_generator(images, features, wanted)
        return features, found, losses

    def _vectors(self, features: Any, boxes: Sequence[Any]) -> Tensor:
        heads = self.network.roi_heads
        maps = heads.pooler([features[name] for name in heads.in_features], boxes)
        vectors: Tensor = heads.res5(maps).mean((2, 3))
        return vectors


class Detectron2Head(nn.Module):
    """What follows the convolutions of the box head; see `contract.BoxHead`.

    Args:
        detector: whose layers these are; put in evaluation mode.
        proposals: regions P of every image, the likeliest ones.
    """

    sites = ("pooled",)

    def __init__(self, detector: Detectron2Detector, proposals: int) -> None:
        super().__init__()
        from torchvision.models.detection._utils import BoxCoder

        predictor = detector.eval().network.roi_heads.box_predictor
        # In a tuple: not a module of this one, whose weights are the head's alone.
        self._detector = (detector,)
        self._count = proposals
        self.pooled = _Pooled()
        coder = BoxCoder(predictor.box2box_transform.weights)
        self.reading = RegionReading(
            _Then(predictor.cls_score, lambda logits: logits.roll(1, -1)),
            _Then(predictor.bbox_pred, lambda boxes: pad(boxes, (4, 0))),
            coder,
        )

    def forward(self, regions: Tensor) -> Tensor:
        """Return the outputs of regions [n, P, F + 8], packed, [n, P, 5 C + 6]."""
        hidden = self.pooled(regions[..., :-GEOMETRY])
        outputs: Tensor = self.reading(hidden, regions[..., -GEOMETRY:])
        return outputs

    @torch.no_grad()
    def regions(self, images: Sequence[Tensor]) -> Tensor:
        """Return what the head needs of n images, shape [n, P, F + 8]."""
        (detector,) = self._detector
        device = next(detector.parameters()).device
        given = [image.to(device) for image in images]
        return detector.regions(given, self._count)


def check_installed() -> None:
    """Check that detectron2 can be used.

    Raises:
        ConfigError: if it is not installed, or cannot be imported.
    """
    how = " && ".join(INSTALL)
    if importlib.util.find_spec("detectron2") is None:
        raise ConfigError(f"this detector needs detectron2; install it: {how}")
    try:
        import detectron2._C
        import detectron2.model_zoo  # it needs setuptools, too
        import detectron2.modeling  # noqa: F401
    except Exception as error:  # a broken build raises many kinds
        raise ConfigError(
            f"detectron2 is installed, but cannot be imported: {error}; build it again "
            f"for torch {torch.__version__}: {how}"
        ) from error


def _built(classes: int, changes: dict[str, Any]) -> Any:
    from detectron2 import model_zoo
    from detectron2.modeling import build_model

    settings = model_zoo.get_config(CONFIG)
    settings.MODEL.WEIGHTS, settings.MODEL.DEVICE = "", "cpu"
    settings.MODEL.ROI_HEADS.NUM_CLASSES = classes
    settings.MODEL.RESNETS.STRIDE_IN_1X1 = False
    # Images come normalised already, as torchvision's weights want them.
    settings.MODEL.PIXEL_MEAN, settings.MODEL.PIXEL_STD = [0.0] * 3, [1.0] * 3
    settings.merge_from_list([each for pair in changes.items() for each in pair])
    return build_model(settings)


class _Pooled(nn.Identity):
    """The means of the convolutions over regions [n, P, F], where FiLM stands."""

    channel_dim = -1


class _Then(nn.Module):
    """A layer, and what is done to its outputs."""

    def __init__(self, layer: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.change = layer, change

    def forward(self, vectors: Tensor) -> Tensor:
        return self.change(self.layer(vectors))


class ResNetTrunk(nn.Module):
    """Both parts of the ResNet; its state has the names of torchvision's.

    Args:
        network: a detector of detectron2 whose box head is the last stage.
    """

    pretrained = Pretrained("ResNet50_Weights.IMAGENET1K_V1", ("fc",), ())

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.stages = nn.ModuleDict({"stem": network.backbone.stem})
        for place in (2, 3, 4):
            self.stages[f"res{place}"] = getattr(network.backbone, f"res{place}")
        self.stages["res5"] = network.roi_heads.res5

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Return the tensors by torchvision's names."""
        own = super().state_dict(*args, **kwargs).items()
        return {_of_torchvision(name): tensor for name, tensor in own}

    def load_state_dict(self, state: Any, strict: bool = True, **_: Any) -> Any:  # type: ignore[override]
        """Copy tensors by torchvision's names."""
        names = super().state_dict()
        own = {name: state[_of_torchvision(name)] for name in names}
        return super().load_state_dict(own, strict)


def _of_torchvision(name: str) -> str:
    """Return what torchvision calls a tensor: `stages.res2.0.conv1.norm.bias`."""
    _, stage, *rest = name.split(".")
    if stage == "stem":
        layer = "bn1" if "norm" in rest else "conv1"
        return f"{layer}.{rest[-1]}"
    own = STAGES[stage]
    block, layer, *_, last = rest
    if layer == "shortcut":
        return f"{own}.{block}.downsample.{int('norm' in rest)}.{last}"
    kind = layer.replace("conv", "bn") if "norm" in rest else layer
    return f"{own}.{block}.{kind}.{last}"

"""The box head of a detector as a network of its own, and what it is given.

All that comes before the box head, the proposals included, does not depend on phi. It
is computed once: a metric query then costs the head alone.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from metricopt.detection.forms import check_inside
from metricopt.detection.region_outputs import RegionOutputs
from metricopt.detection.truths import pack_truths
from metricopt.errors import ConfigError

GEOMETRY = 8
"""Numbers that follow the features of a region: its proposal x1, y1, x2, y2 and the
height and width of the image, in pixels as the network sees them, then the height and
width of the original relative to these. All are 0 where there is no region."""


class DetectorHead(nn.Module):
    """The box head of a torchvision detector: from regions to logits and boxes.

    Its layers are those of the detector itself: what modulates them modulates the
    detector, too.

    Args:
        detector: a torchvision `GeneralizedRCNN` whose box head ends in linear layers,
            such as any Faster R-CNN; put in evaluation mode.
        proposals: regions P of every image, the likeliest ones.

    Attributes:
        sites: names of the linear layers of the box head, for FiLM.

    Raises:
        ConfigError: if the network is none of these.
    """

    def __init__(self, detector: nn.Module, proposals: int = 100) -> None:
        super().__init__()
        whole: Any = detector.eval()
        heads = _checked_heads(whole)
        before, after = _at_first_linear(heads.box_head)
        # In a tuple: not a module of this one, whose weights are the head's alone.
        self._detector = (whole,)
        self.proposals = proposals
        shape = (whole.backbone.out_channels, *heads.box_roi_pool.output_size)
        self.stem = _Stem(before, shape)
        self.layers = nn.Sequential(*after)
        predictor = heads.box_predictor
        self.reading = RegionReading(
            predictor.cls_score, predictor.bbox_pred, heads.box_coder
        )
        self.sites = tuple(
            f"layers.{place}"
            for place, layer in enumerate(after)
            if isinstance(layer, nn.Linear)
        )

    @property
    def detector(self) -> nn.Module:
        """The whole detector: the given one, or that of a copy of this head.

        Raises:
            ConfigError: if this head has layers that the detector lacks.
        """
        whole: nn.Module = self._detector[0]
        own = [*self.stem.layers, *self.layers, *self.reading.children()]
        if not {part for part in own if part.state_dict()} <= set(whole.modules()):
            raise ConfigError(
                "phi is in modules that follow layers of this head, so the whole "
                "detector does not have it: put it in with apply()"
            )
        return whole

    def forward(self, regions: Tensor) -> Tensor:
        """Return packed outputs [n, P, 5 C + 6] of `regions` [n, P, F + 8]."""
        hidden = self.layers(self.stem(regions[..., :-GEOMETRY]))
        outputs: Tensor = self.reading(hidden, regions[..., -GEOMETRY:])
        return outputs

    @torch.no_grad()
    def regions(self, images: Sequence[Tensor]) -> Tensor:
        """Return the pooled features of the proposals, with their geometry.

        Args:
            images: n images [3, H, W] of any sizes, in [0, 1].

        Returns:
            Shape [n, P, F + 8]: features, flat, then `GEOMETRY`.
        """
        (detector,) = self._detector
        detector.eval()
        device = next(detector.parameters()).device
        given = [image.to(device) for image in images]
        seen, _ = detector.transform(given)
        features = detector.backbone(seen.tensors)
        if isinstance(features, Tensor):
            features = {"0": features}
        proposals, _ = detector.rpn(seen, features)
        proposals = [boxes[: self.proposals] for boxes in proposals]
        pooled = detector.roi_heads.box_roi_pool(features, proposals, seen.image_sizes)
        return pack_regions(
            pooled.flatten(1), proposals, given, seen.image_sizes, self.proposals
        )


class Regions:
    """Images as a detector's head takes them; see `metricopt.tasks.examples.Examples`.

    Regions are computed whenever they are asked for. Adapters ask once.

    Args:
        head: gives the regions.
        images: pairs of an image [3, H, W] in [0, 1] and its target, a mapping of
            `boxes` and `labels`; a data set or any other sequence.
        targets: packed objects [N, G, 6]; None to read them from the pairs.

    Attributes:
        targets: objects of the images, shape [N, G, 6].

    Raises:
        DataError: if a target is wrong, see `pack_truths`, or a box reaches beyond its
            image by more than a tenth.
    """

    def __init__(
        self,
        head: DetectorHead,
        images: Sequence[Any],
        *,
        targets: Tensor | None = None,
    ) -> None:
        self._head, self._images = head, images
        if targets is None:
            sizes, found = [], []
            for at in range(len(images)):  # one image in memory at a time
                image, target = images[at]
                sizes.append(tuple(image.shape[-2:]))
                found.append(target)
            targets = pack_truths(found)
            check_inside(targets, sizes)
        device = next(head.parameters()).device
        self.targets = targets.to(device)

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, index: slice | Tensor) -> Tensor:
        """Return the regions of some images, shape [n, P, F + 8]."""
        chosen = index if isinstance(index, slice) else index.cpu()
        places = torch.arange(len(self))[chosen]
        return self._head.regions([self._images[at][0] for at in places.tolist()])


class _Stem(nn.Module):
    """What the box head does to each region before its first linear layer."""

    def __init__(self, layers: Sequence[nn.Module], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self._shape = shape

    def forward(self, features: Tensor) -> Tensor:
        """Return features [n, P, F] as vectors [n, P, H]."""
        if not len(self.layers):
            return features
        images, regions = features.shape[:2]
        maps = features.reshape(images * regions, *self._shape)
        vectors: Tensor = self.layers(maps).flatten(1)
        return vectors.view(images, regions, -1)


class RegionReading(nn.Module):
    """The last layers, with the boxes decoded and cut at the edges of the image.

    They turn vectors [n, P, H] into logits [n, P, C + 1], the background first, and
    offsets of boxes [n, P, 4 C + 4], which a coder such as torchvision's `BoxCoder`
    decodes.
    """

    def __init__(self, classes: nn.Module, boxes: nn.Module, coder: Any) -> None:
        super().__init__()
        self.classes, self.boxes = classes, boxes
        self._coder = coder

    def forward(self, hidden: Tensor, geometry: Tensor) -> Tensor:
        """Return packed outputs of vectors [n, P, H] and geometry [n, P, 8]."""
        logits, codes = self.classes(hidden), self.boxes(hidden)
        shape = codes.shape[:2]
        flat = geometry.flatten(0, 1)
        boxes = self._coder.decode_single(codes.flatten(0, 1), flat[:, :4])
        boxes = boxes.unflatten(0, shape).unflatten(-1, (-1, 4))[..., 1:, :]
        size, ratio = geometry[..., 4:6].flip(-1), geometry[..., 6:8].flip(-1)
        edge, scale = torch.cat([size, size], -1), torch.cat([ratio, ratio], -1)
        inside = boxes.clamp(min=0).minimum(edge[..., None, :])
        return RegionOutputs(
            logits,
            inside * scale[..., None, :],
            geometry[..., :4] * scale,
            geometry[..., 4] > 0,
        ).packed()


def pack_regions(
    features: Tensor,
    proposals: Sequence[Tensor],
    images: Sequence[Tensor],
    sizes: Sequence[tuple[int, int]],
    count: int,
) -> Tensor:
    """Return the regions of n images as a head takes them, shape [n, P, F + 8].

    Features of the regions of all images are [R, F], proposals of an image [r, 4], in
    pixels as the network sees it. Images [3, H, W] are as they were given, sizes their
    heights and widths as the network sees them. Of `count` = P regions, missing ones
    are zeros.
    """
    parts = features.split([len(boxes) for boxes in proposals])
    pairs = zip(images, sizes, strict=True)
    rows = [
        torch.cat([part, boxes, _scale(boxes, image, size)], 1)
        for part, boxes, (image, size) in zip(parts, proposals, pairs, strict=True)
    ]
    return torch.stack([pad(row, (0, 0, 0, count - len(row))) for row in rows])


def _checked_heads(detector: nn.Module) -> Any:
    heads = getattr(detector, "roi_heads", None)
    predictor = getattr(heads, "box_predictor", None)
    if not hasattr(heads, "box_head") or not hasattr(predictor, "cls_score"):
        raise ConfigError(
            "a detector's head needs a torchvision detector with roi_heads.box_head "
            f"and a box_predictor with cls_score, got {type(detector).__name__}"
        )
    return heads


def _at_first_linear(box_head: Any) -> tuple[list[nn.Module], list[nn.Module]]:
    """Return the layers before the first linear one, and all from it on."""
    if hasattr(box_head, "fc6") and hasattr(box_head, "fc7"):  # `TwoMLPHead`
        return [], [box_head.fc6, nn.ReLU(), box_head.fc7, nn.ReLU()]
    layers = list(box_head) if isinstance(box_head, nn.Sequential) else []
    linear = [at for at, layer in enumerate(layers) if isinstance(layer, nn.Linear)]
    if not linear:
        raise ConfigError(
            "a box head must be a TwoMLPHead, or a sequence with a linear layer, got "
            f"{type(box_head).__name__}"
        )
    return layers[: linear[0]], layers[linear[0] :]


def _scale(boxes: Tensor, image: Tensor, size: tuple[int, int]) -> Tensor:
    """Return the size of the image as it is seen, and of the original by it, [P, 4]."""
    high, wide = image.shape[-2:]
    numbers = [*size, high / size[0], wide / size[1]]
    return boxes.new_tensor(numbers).expand(len(boxes), -1)

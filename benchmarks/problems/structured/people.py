"""People as a pose network is trained on and judged by them."""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from baselines.training.batches import WHOLE, MiniBatch, PermutedBatches
from benchmarks.data.poses.contract import PersonImages, Skeleton
from benchmarks.networks.poses.contract import STRIDE
from benchmarks.problems.pretrained.photographs import CENTRE, SCALE
from metricopt.errors import DataError
from metricopt.structured.poses import pack_poses

GREY = (124, 116, 104)
"""Outside of an image: the mean of ImageNet."""
TURN, TURNED = 40.0, 0.6
"""Most degrees an image is turned by, and share of the images that are."""
ZOOM = 0.3
"""Most by which a person is larger or smaller."""
THREADS = 2


class People:
    """People cut out of images at the size of a network; read when they are asked for.

    They are examples in the sense of `metricopt.tasks.examples.Examples`. Targets are
    packed poses in cells of the heat maps, see `metricopt.structured.poses`.

    Args:
        source: all people of a data set.
        places: places of these people in it, int64, shape [N].
        sides: height and width of the inputs of the network.

    Attributes:
        targets: packed poses, shape [N, J + 1, 3].
    """

    def __init__(
        self, source: PersonImages, places: Tensor, sides: tuple[int, int]
    ) -> None:
        self._source, self._places, self.sides = source, places, sides
        maps = _to_inputs(source.boxes[places], sides)
        self.targets = self._packed(maps)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def skeleton(self) -> Skeleton:
        """The joints."""
        return self._source.skeleton

    def to(self, device: torch.device) -> "People":
        """Return the same people, whose batches are on a device."""
        moved = copy.copy(self)
        moved.targets = self.targets.to(device)
        return moved

    def first(self, count: int | None) -> "People":
        """Return the first people; all of them for None."""
        kept = copy.copy(self)
        kept.targets, kept._places = self.targets[:count], self._places[:count]
        return kept

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return people as they are, float32, [n, 3, H, W], channels last."""
        chosen = self._places[index if isinstance(index, slice) else index.cpu()]
        maps = _to_inputs(self._source.boxes[chosen], self.sides)
        return self._normalised(self._read(chosen, maps))

    def pixels(self, place: int) -> Tensor:
        """Return a person as the network sees it, bytes, uint8, [H, W, 3]."""
        chosen = self._places[place : place + 1]
        maps = _to_inputs(self._source.boxes[chosen], self.sides)
        return torch.from_numpy(self._read(chosen, maps)[0])

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return people turned, scaled and mirrored at random; see `changed`."""
        inputs, _ = self.changed(index, generator, share)
        return inputs

    def changed(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> MiniBatch:
        """Return people turned, scaled and mirrored at random, with their poses.

        Joints that leave the image count no longer.

        Args:
            index: which people, shape [n].
            generator: on the CPU.
            share: the places of them that are read and returned.

        Source: Xiao et al., ECCV 2018: a turn of up to 40 degrees, 30 % larger or
            smaller, and half of them mirrored.
        """
        drawn = torch.rand(4, len(index), generator=generator)[:, share]
        chosen = self._places[index[share].cpu()]
        turn = torch.deg2rad(TURN * (2 * drawn[0] - 1)) * (drawn[1] < TURNED)
        zoom = 1 + ZOOM * (2 * drawn[2] - 1)
        mirror = drawn[3] < 0.5
        maps = _to_inputs(
            self._source.boxes[chosen], self.sides, turn=turn, zoom=zoom, mirror=mirror
        )
        poses = self._packed(maps, chosen, mirror)
        device = self.targets.device
        return self._normalised(self._read(chosen, maps)), poses.to(device)

    def _packed(
        self, maps: Tensor, places: Tensor | None = None, mirror: Tensor | None = None
    ) -> Tensor:
        """Return the poses of people under affine maps [n, 2, 3] to inputs."""
        source, places = self._source, self._places if places is None else places
        joints = source.joints[places].double()
        if mirror is not None:
            swapped = joints[:, source.skeleton.mirrored]
            joints = swapped.where(mirror[:, None, None], joints)
        moved = joints[..., :2] @ maps[:, :, :2].mT + maps[:, None, :, 2]
        sides = torch.tensor([self.sides[1], self.sides[0]])
        inside = ((moved >= 0) & (moved < sides)).all(-1)
        known = (joints[..., 2] == 1) & (inside | torch.tensor(mirror is None))
        scale = maps[:, :, :2].det().abs() / STRIDE**2
        cells = torch.cat([moved / STRIDE, known[..., None]], -1)
        return pack_poses(
            cells,
            source.references[places] * scale.sqrt(),
            source.areas[places] * scale,
        )

    def _read(self, places: Tensor, maps: Tensor) -> "np.ndarray":  # type: ignore[type-arg]
        """Return people under affine maps, uint8, [n, H, W, 3]."""
        height, width = self.sides
        inverse = _inverse(maps)

        def one(pair: tuple[int, list[float]]) -> "np.ndarray":  # type: ignore[type-arg]
            place, numbers = pair
            try:
                image = self._source.read(place)
            except DataError as error:
                remedy = self._source.reader.remedy
                raise DataError(f"{error}; {remedy}") from error
            return np.asarray(
                image.transform(
                    (width, height),
                    Image.Transform.AFFINE,
                    numbers,
                    Image.Resampling.BILINEAR,
                    fillcolor=GREY,
                )
            )

        pairs = list(zip(places.tolist(), inverse.tolist(), strict=True))
        with ThreadPoolExecutor(THREADS) as pool:
            return np.stack(list(pool.map(one, pairs)))

    def _normalised(self, images: "np.ndarray") -> Tensor:  # type: ignore[type-arg]
        numbers = torch.from_numpy(images).to(self.targets.device).float() / 255
        centre, scale = numbers.new_tensor(CENTRE), numbers.new_tensor(SCALE)
        return ((numbers - centre) / scale).permute(0, 3, 1, 2)


class PeopleBatches(PermutedBatches):
    """Every person at most once in an epoch, changed at random, with the changed pose.

    Args:
        examples: the people.
        batch_size: people of one mini-batch, at least 2.
    """

    def __init__(self, examples: People, batch_size: int) -> None:
        super().__init__(examples, batch_size)
        self._people = examples

    def epoch(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the mini-batches of one permutation of the people."""
        order = torch.randperm(len(self._people), generator=generator)
        used = order[: self.steps_per_epoch * self.batch_size]
        for index in used.split(self.batch_size):
            yield self._people.changed(index, generator, self.share)


def _to_inputs(
    boxes: Tensor,
    sides: tuple[int, int],
    *,
    turn: Tensor | None = None,
    zoom: Tensor | None = None,
    mirror: Tensor | None = None,
) -> Tensor:
    """Return affine maps from pixels of images to those of inputs, float64, [n, 2, 3].

    Boxes [n, 4] become the whole input; a turn in radians, a zoom and a reflection [n]
    are about the middle.
    """
    height, width = sides
    boxes = boxes.double()
    count = len(boxes)
    turn = boxes.new_zeros(count) if turn is None else turn.double()
    zoom = boxes.new_ones(count) if zoom is None else zoom.double()
    scale = zoom * torch.minimum(width / boxes[:, 2], height / boxes[:, 3])
    side = scale if mirror is None else torch.where(mirror, -scale, scale)
    cos, sin = turn.cos(), turn.sin()
    linear = torch.stack(
        [
            torch.stack([side * cos, -side * sin], 1),
            torch.stack([scale * sin, scale * cos], 1),
        ],
        1,
    )
    middle = boxes[:, :2] + boxes[:, 2:] / 2
    aim = torch.tensor([width / 2, height / 2], dtype=torch.float64)
    shift = aim - (linear @ middle[..., None])[..., 0]
    return torch.cat([linear, shift[..., None]], 2)


def _inverse(maps: Tensor) -> Tensor:
    """Return the maps back, as six numbers each, [n, 6], in the order of Pillow."""
    linear = torch.linalg.inv(maps[:, :, :2])
    shift = -(linear @ maps[:, :, 2:])
    return torch.cat([linear, shift], 2).flatten(1)

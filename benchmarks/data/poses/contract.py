"""The contract of a data set of poses: images, and a person in each with joints."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from benchmarks.data.files.decoded import ReadImages
from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.read_source import DividedSource
from metricopt.errors import DataError
from metricopt.registry import Registry

TRAIN, TEST = "train", "test"
FEWEST_JOINTS = 1
"""Labelled joints that a person needs."""


@dataclass(frozen=True)
class Skeleton:
    """The joints of a data set.

    Attributes:
        joints: names of the J joints.
        pairs: places of joints that trade places in a mirrored image.
        bones: places of joints that a picture joins with lines.
    """

    joints: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    bones: tuple[tuple[int, int], ...]

    @property
    def mirrored(self) -> Tensor:
        """Places of the joints in a mirrored image, shape [J]."""
        order = list(range(len(self.joints)))
        for left, right in self.pairs:
            order[left], order[right] = right, left
        return torch.tensor(order)


@dataclass(frozen=True, eq=False)
class PersonImages(ReadImages):
    """People in images, one an entry; the digest is of all annotations and paths.

    Attributes:
        skeleton: the joints.
        joints: x, y in pixels and whether the joint is labelled, float32, [N, J, 3].
        boxes: box of every person that the network sees, x, y, width, height, [N, 4].
        references: length that distances are compared with, in pixels, [N].
        areas: area of every person, in square pixels, [N].
        series: people of one number stay together when parts are divided, int64, [N].
        parts: places of the people of `train` and `test`, int64.
    """

    skeleton: Skeleton
    joints: Tensor
    boxes: Tensor
    references: Tensor
    areas: Tensor
    series: Tensor
    parts: Mapping[str, Tensor]


class PoseSource(DividedSource):
    """A data set of people.

    Attributes:
        skeleton: the joints.
    """

    counts = "({:,}, {:,}) people to train and test"
    skeleton: ClassVar[Skeleton]

    def _read(self, reader: Reader) -> PersonImages:
        images = self._people(reader)
        found = (len(images.parts[TRAIN]), len(images.parts[TEST]))
        self._check(found, images.digest)
        return images

    @abstractmethod
    def _people(self, reader: Reader) -> PersonImages:
        """Return the people that a reader reads.

        Raises:
            DataError: if files are missing or malformed.
        """


POSES: Registry[type[PoseSource]] = Registry(
    "data set of poses", "benchmarks.data.poses"
)
"""All data sets of poses by name."""


def check_joints(
    label: str, names: Sequence[str], skeleton: Skeleton, joints: Tensor, sides: Tensor
) -> None:
    """Check the joints of people, before an image is read.

    Joints that are not labelled may be anywhere.

    Args:
        label: name of the data set.
        names: what messages call every person, N of them.
        skeleton: names the joints.
        joints: shape [N, J, 3].
        sides: width and height of every image, shape [N, 2].

    Raises:
        DataError: if a number is not finite, a label is neither 0 nor 1, a labelled
            joint is outside of its image, or a person has no labelled joint.
    """
    finite = joints.isfinite().all(-1)
    labels, known = joints[..., 2], joints[..., 2] == 1
    outside = (joints[..., :2] < 0) | (joints[..., :2] > sides[:, None])
    for what, wrong in (
        ("joints that are no numbers", ~finite),
        ("joints that are labelled neither 1 nor 0", ~known & (labels != 0)),
        ("labelled joints outside of their image", outside.any(-1) & known),
    ):
        places = wrong.nonzero().tolist()
        refuse(label, what, [f"{skeleton.joints[j]} of {names[i]}" for i, j in places])
    few = known.sum(1) < FEWEST_JOINTS
    bare = [names[place] for place in few.nonzero()[:, 0].tolist()]
    refuse(label, "people without a labelled joint", bare)


def extents(joints: Tensor) -> Tensor:
    """Return the box of the labelled joints [N, J, 3]: x, y, width, height, [N, 4]."""
    known = joints[..., 2:] == 1
    low = joints[..., :2].where(known, torch.inf).amin(1)
    high = joints[..., :2].where(known, -torch.inf).amax(1)
    return torch.cat([low, high - low], 1)


def digest_of_people(joints: Tensor, paths: Sequence[str]) -> str:
    """Return the sha256 of paths and annotations, in hexadecimal."""
    content = "\n".join(paths).encode() + joints.contiguous().numpy().tobytes()
    return hashlib.sha256(content).hexdigest()


def require_parts(label: str, parts: Mapping[str, Tensor]) -> None:
    """Check that both parts have people.

    Raises:
        DataError: if one has none.
    """
    for name in (TRAIN, TEST):
        if not len(parts[name]):
            raise DataError(f"{label} needs people in its part {name}, got none")

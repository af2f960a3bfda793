"""Drawn people: stick figures that are drawn when they are read, for the smoke tier."""

import io
import math
import random
from collections.abc import Mapping
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from benchmarks.data.files.readers import Reader
from benchmarks.data.poses.contract import (
    POSES,
    TEST,
    TRAIN,
    PersonImages,
    PoseSource,
    check_joints,
    digest_of_people,
    extents,
)
from benchmarks.data.poses.sports_joints import LEEDS, MASK, torsos
from benchmarks.data.read_source import DrawnSource

WIDE, HIGH = 48, 64
TRAINED, TESTED = 96, 48
Point = tuple[float, float]


@POSES.register("drawn-people")
class DrawnPeople(DrawnSource, PoseSource):
    """144 stick figures with the joints of Leeds Sports Pose: 96 train, 48 test."""

    name = "drawn-people"
    folder = "drawn-people"
    expected = (TRAINED, TESTED)
    skeleton = LEEDS

    def _reader(self, folder: Path) -> Reader:
        return _Drawn()

    def _people(self, reader: Reader) -> PersonImages:
        paths = tuple(reader.sizes)
        drawn = [_joints(random.Random(path)) for path in paths]
        # Whole pixels: the same digest on every machine.
        joints = torch.tensor([[(x, y, 1.0) for x, y in one] for one in drawn]).round()
        sides = torch.tensor([WIDE, HIGH]).expand(len(paths), 2)
        check_joints(self.name, paths, LEEDS, joints, sides)
        places = torch.arange(len(paths))
        return PersonImages(
            self.name,
            digest_of_people(joints, paths),
            paths,
            reader,
            LEEDS,
            joints,
            torch.tensor([0.0, 0.0, WIDE, HIGH]).expand(len(paths), 4),
            torsos(joints),
            MASK * extents(joints)[:, 2:].prod(1),
            places // 4,
            {TRAIN: places[:TRAINED], TEST: places[TRAINED:]},
        )


class _Drawn(Reader):
    """Draws the image of a path."""

    @property
    def sizes(self) -> Mapping[str, int]:
        return {f"{place:03}.png": 0 for place in range(TRAINED + TESTED)}

    def read(self, path: str) -> bytes:
        chance = random.Random(path)
        joints = _joints(chance)
        image = Image.new("RGB", (WIDE, HIGH), (chance.randint(90, 160),) * 3)
        draw = ImageDraw.Draw(image)
        for first, second in LEEDS.bones:
            # Left and right can be told apart: the network has to.
            left = "l_" in LEEDS.joints[first] + LEEDS.joints[second]
            colour = (200, 40, 40) if left else (40, 40, 200)
            draw.line((*joints[first], *joints[second]), fill=colour, width=2)
        content = io.BytesIO()
        image.save(content, "PNG")
        return content.getvalue()


def _joints(chance: random.Random) -> list[Point]:
    """Return the joints of a figure that faces the viewer, in pixels."""
    x, y = WIDE / 2 + chance.uniform(-4, 4), 22 + chance.uniform(-3, 3)
    long = chance.uniform(11, 14)
    right, left = (x - 5, y), (x + 5, y)
    hips = (x - 4, y + long), (x + 4, y + long)
    legs = [
        _limb(hip, math.pi / 2 + chance.uniform(-0.4, 0.4), 10, chance) for hip in hips
    ]
    arms = [
        _limb(shoulder, turn + chance.uniform(-0.6, 0.6), 8, chance)
        for shoulder, turn in ((right, 0.8 * math.pi), (left, 0.2 * math.pi))
    ]
    (r_knee, r_ankle), (l_knee, l_ankle) = legs
    (r_elbow, r_wrist), (l_elbow, l_wrist) = arms
    return [
        *(r_ankle, r_knee, hips[0], hips[1], l_knee, l_ankle),
        *(r_wrist, r_elbow, right, left, l_elbow, l_wrist),
        *((x, y - 2), (x, y - 10)),
    ]


def _limb(
    start: Point, angle: float, long: float, chance: random.Random
) -> tuple[Point, Point]:
    """Return the middle and the end of an arm or a leg, within the image."""
    found = []
    for _ in range(2):
        angle += chance.uniform(-0.4, 0.4)
        x = start[0] + long * math.cos(angle)
        y = start[1] + long * math.sin(angle)
        start = (min(max(x, 1.0), WIDE - 2.0), min(max(y, 1.0), HIGH - 2.0))
        found.append(start)
    return found[0], found[1]

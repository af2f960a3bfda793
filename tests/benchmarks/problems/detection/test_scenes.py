"""Images with their objects: mirrored boxes, difficult ones, splits by seed."""

from dataclasses import replace

import pytest
import torch

from benchmarks.data.detection.contract import in_devkit
from benchmarks.data.files.readers import FolderReader
from benchmarks.problems.detection.pipeline import DetectionProblem, load_splits
from benchmarks.problems.detection.scenes import Scenes
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.data.detection.devkit import CLASSES, YEAR, write_devkit

LISTS = {"train": [(YEAR, "trainval")], "test": [(YEAR, "test")]}
DRAWN = DetectionProblem("drawn-cells", 0.4)


@pytest.fixture
def mini(tmp_path):
    reader = FolderReader(write_devkit(tmp_path / "devkit"))
    data = in_devkit(reader, LISTS, CLASSES, "mini")
    return Scenes(data, data.parts["train"])


def test_difficult_objects_are_judged_but_not_learned(mini):
    image, target = mini[0]
    assert image.shape == (3, 30, 40)
    assert image.dtype == torch.float32
    assert image.max() <= 1
    assert target["boxes"].tolist() == [[0, 0, 10, 20]]
    assert target["labels"].tolist() == [1]
    assert mini.targets[0, :, 5].tolist() == [0, 1]


def test_an_image_without_an_object_has_no_box(mini):
    assert mini[2][1]["boxes"].shape == (0, 4)


@pytest.mark.parametrize("upside_down", [False, True])
def test_boxes_are_mirrored_with_their_image(upside_down):
    scenes = load_splits(DRAWN, 0).train.flipped(upside_down=upside_down)
    generator = torch.Generator().manual_seed(0)
    places = torch.arange(12)
    plain, changed = scenes.batch(slice(12)), scenes.augmented(places, generator)
    seen = set()
    for one, other, boxes, moved in zip(
        plain[0], changed[0], plain[1], changed[1], strict=True
    ):
        axes = [
            axes
            for axes in ((), (2,), (1,), (1, 2))
            if torch.equal(one.flip(axes) if axes else one, other)
        ]
        assert len(axes) == 1
        seen.update(axes)
        for box, at in zip(boxes["boxes"], moved["boxes"], strict=True):
            area = patch(one, box)
            assert torch.equal(
                area.flip(axes[0]) if axes[0] else area, patch(other, at)
            )
    expected = {(), (2,), (1,), (1, 2)} if upside_down else {(), (2,)}
    assert seen == expected


def test_a_share_is_a_part_of_the_whole():
    scenes, places = load_splits(DRAWN, 0).train, torch.arange(12)
    whole, part = (
        scenes.augmented(places, torch.Generator().manual_seed(0), share)
        for share in (slice(None), slice(6, 12))
    )
    for one, other in zip(whole[0][6:], part[0], strict=True):
        assert torch.equal(one, other)
    assert len(part[1]) == 6


def patch(image, box):
    x1, y1, x2, y2 = box.int().tolist()
    return image[:, y1:y2, x1:x2]


def test_replicates_observe_other_images_and_test_the_same():
    one, other = (load_splits(DRAWN, replicate) for replicate in (0, 1))
    assert (len(one.train), len(one.observe), len(one.test)) == (36, 24, 24)
    assert not torch.equal(one.observe.targets, other.observe.targets)
    assert torch.equal(one.test.targets, other.test.targets)


def test_a_share_that_leaves_a_part_empty_or_without_a_class_is_named():
    with pytest.raises(DataError, match=r"share of 0.001 is observed: expected one"):
        load_splits(replace(DRAWN, observed=0.001), 0)
    # The three observed images of some replicate show no disc, or no square.
    with pytest.raises(DataError, match="observe split of drawn-cells must hold every"):
        for replicate in range(100):
            load_splits(replace(DRAWN, observed=0.05), replicate)
    with pytest.raises(ConfigError, match=r"observed in \(0, 1\), got observed=1.5"):
        DetectionProblem("drawn-cells", 1.5)

"""Photographs as examples: batches, parts of a data set, random crops."""

import pytest
import torch

from benchmarks.data.files.decoded import pixels
from benchmarks.data.listed.contract import LISTED
from benchmarks.problems.pretrained.photographs import CENTRE, SCALE, Photographs
from metricopt.tasks.examples import Examples


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def shapes():
    data = LISTED.get("drawn-shapes")().load(offline=True)
    places = torch.arange(10, 40)
    return Photographs(pixels(data, 32), places, data.classes[places])


def test_they_are_examples(shapes):
    assert isinstance(shapes, Examples)
    assert len(shapes) == len(shapes.targets) == 30
    batch = shapes.batch(slice(4, 9))
    assert batch.shape == (5, 3, 32, 32)
    assert torch.equal(batch[1:3], shapes.batch(torch.tensor([5, 6])))
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_batches_are_normalised_pixels(shapes):
    found = shapes.batch(slice(2, 3))[0].permute(1, 2, 0)
    bytes_ = (found * torch.tensor(SCALE) + torch.tensor(CENTRE)) * 255
    assert torch.equal(bytes_.round().to(torch.uint8), shapes.pixels(2))


def test_a_share_is_a_part_of_the_whole(shapes):
    index = torch.arange(8)
    whole = shapes.augmented(index, seeded(0))
    assert torch.equal(whole[4:], shapes.augmented(index, seeded(0), slice(4, 8)))


def test_crops_depend_on_the_generator_alone(shapes):
    index = torch.arange(8)
    one, same, other = (shapes.augmented(index, seeded(s)) for s in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.shape == (8, 3, 32, 32)
    assert one.is_contiguous(memory_format=torch.channels_last)


def test_large_crops_are_nearer_to_the_image_or_its_mirror(shapes):
    index, whole = torch.arange(30), shapes.batch(slice(0, 30))

    def apart(images):
        crops = images.augmented(index, seeded(2))
        both = [(crops - each).abs().mean((1, 2, 3)) for each in (whole, whole.flip(3))]
        return torch.minimum(*both).mean()

    assert apart(shapes.with_crops(0.95)) < 0.5 * apart(shapes)


def test_crops_are_parts_of_the_image(shapes):
    index = torch.zeros(200, dtype=torch.long)
    crops, whole = shapes.augmented(index, seeded(3)), shapes.batch(slice(0, 1))
    assert crops.amax((0, 2, 3)).le(whole.amax((0, 2, 3)) + 1e-4).all()
    assert crops.amin((0, 2, 3)).ge(whole.amin((0, 2, 3)) - 1e-4).all()
    # Neither padded nor all alike, and mirrored about half of the time.
    assert len(crops.flatten(1).unique(dim=0)) == 200
    means = crops.mean((0, 2, 3)) - whole.mean((0, 2, 3))
    assert means.abs().max() < 0.3

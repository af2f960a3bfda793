"""Augmented images against a loop over them; normalisation."""

import pytest
import torch

from benchmarks.problems.images.images import Images, channel_statistics
from metricopt.errors import ConfigError
from metricopt.tasks.examples import Examples


def colour_images(count: int, side: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (count, side, side, 3)
    return torch.randint(256, shape, generator=generator, dtype=torch.uint8)


@pytest.fixture
def images():
    return colour_images(12)


LABELS = torch.arange(12) % 3


@pytest.fixture
def batches(images):
    return Images(images, LABELS, *channel_statistics(images))


def test_statistics_are_those_of_all_pixels(images):
    centre, scale = channel_statistics(images)
    pixels = images.reshape(-1, 3).double()
    torch.testing.assert_close(centre.double(), pixels.mean(0), rtol=1e-6, atol=0)
    expected = pixels.std(0, correction=0)
    torch.testing.assert_close(scale.double(), expected, rtol=1e-6, atol=0)


def test_a_constant_channel_does_not_divide_by_zero():
    centre, scale = channel_statistics(torch.full((2, 8, 8, 3), 7, dtype=torch.uint8))
    assert centre.tolist() == [7, 7, 7] and scale.tolist() == [1, 1, 1]


def test_plain_images_are_normalised_and_come_channels_first(images, batches):
    found = batches.batch(torch.tensor([3, 5]))
    centre, scale = channel_statistics(images)
    expected = (images[[3, 5]] - centre) / scale
    torch.testing.assert_close(found, expected.permute(0, 3, 1, 2))
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_a_slice_and_places_give_the_same_images(batches):
    found = batches.batch(torch.arange(4, 9))
    assert torch.equal(batches.batch(slice(4, 9)), found)


def test_the_first_images_are_examples_of_their_own(batches):
    few: Examples = batches.first(5)
    assert (len(few), len(batches), len(batches.first(None))) == (5, 12, 12)
    assert torch.equal(few.targets, LABELS[:5])
    assert torch.equal(few.batch(slice(None)), batches.batch(slice(5)))


def test_images_on_a_device_are_copies_there(batches):
    moved = batches.to(torch.device("meta"))
    places = {moved.targets.device.type, moved.batch(slice(2)).device.type}
    assert places == {"meta"}
    assert batches.targets.device.type == batches.batch(slice(2)).device.type == "cpu"


def test_crops_are_windows_of_the_padded_image_or_its_mirror(images, batches):
    generator = torch.Generator().manual_seed(1)
    found = batches.augmented(torch.arange(12).repeat(8), generator)
    centre, scale = channel_statistics(images)
    padded = centre.round().to(torch.uint8).expand(12, 20, 20, 3).clone()
    padded[:, 2:18, 2:18] = images
    places, mirrors = set(), set()
    for number, crop in enumerate(found):
        bytes_ = (crop.permute(1, 2, 0) * scale + centre).round().to(torch.uint8)
        source = padded[number % 12]
        matches = [
            (top, left, mirror)
            for top in range(5)
            for left in range(5)
            for mirror in (False, True)
            if torch.equal(_window(source, top, left, mirror), bytes_)
        ]
        assert len(matches) == 1
        places.add(matches[0][:2])
        mirrors.add(matches[0][2])
    assert len(places) > 15 and mirrors == {False, True}


def _window(image, top, left, mirror):
    window = image[top : top + 16, left : left + 16]
    return window.flip(1) if mirror else window


def test_the_generator_alone_decides_the_crops(batches):
    index = torch.arange(12)
    one, same = (
        batches.augmented(index, torch.Generator().manual_seed(3)) for _ in range(2)
    )
    other = batches.augmented(index, torch.Generator().manual_seed(4))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_a_share_is_a_part_of_the_whole(batches):
    index = torch.arange(12)
    whole, part = (
        batches.augmented(index, torch.Generator().manual_seed(3), share)
        for share in (slice(None), slice(4, 8))
    )
    assert torch.equal(whole[4:8], part)


def test_grey_images_are_not_mirrored():
    image = torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8, 1)
    batches = Images(image, torch.zeros(1), torch.zeros(1), torch.ones(1))
    crops = batches.augmented(torch.zeros(40, dtype=torch.int64), torch.Generator())
    # Rising to the right, but where the black padding comes in.
    inner = crops[:, 0, 3, 1:7]
    assert bool((inner.diff(dim=1) > 0).all())


def test_shifted_images_leave_the_crops_nearer_to_the_middle():
    image = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16, 1)
    whole = Images(image, torch.zeros(1), torch.zeros(1), torch.ones(1))
    index = torch.zeros(60, dtype=torch.int64)

    def corners(shift):
        crops = whole.shifted(shift).augmented(index, torch.Generator().manual_seed(1))
        return set(crops[:, 0, 8, 8].tolist())

    around = {shift: set(range(-shift, shift + 1)) for shift in range(3)}
    for shift, near in around.items():
        assert corners(shift) == {
            136 + 16 * down + right for down in near for right in near
        }
    plain = whole.augmented(index, torch.Generator().manual_seed(1))
    assert set(plain[:, 0, 8, 8].tolist()) == corners(2)
    for wrong in (-1, 3):
        with pytest.raises(ConfigError, match=f"a shift from 0 to 2, got {wrong}"):
            whole.shifted(wrong)

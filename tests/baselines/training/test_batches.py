"""Mini-batches: with replacement, or of a permutation, and in which order they draw."""

import pytest
import torch

from baselines.training.batches import PermutedBatches, SampledBatches
from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import make_generator
from metricopt.tasks.examples import LazySplit
from metricopt.tasks.sampling import (
    BalancedSampler,
    ClassSampler,
    NaturalSampler,
    Split,
)
from tests.baselines.toy_images import ToyImages


def numbered(count=50):
    """Examples whose input is their place."""
    return Split(torch.arange(count)[:, None], torch.arange(count) % 3)


@pytest.mark.parametrize("balanced", [True, False])
def test_sampled_mini_batches_are_those_of_the_samplers(balanced):
    split, generator = numbered(), make_generator("a")
    batches = SampledBatches(split, 8, balanced=balanced)
    found = list(batches.epoch(generator))
    sampler = BalancedSampler(split.targets, 8) if balanced else NaturalSampler(50, 8)
    drawn = sampler.draw(6, make_generator("a"))
    assert (batches.steps_per_epoch, len(found)) == (6, 6)
    for (inputs, targets), index in zip(found, drawn, strict=True):
        assert torch.equal(inputs[:, 0], index)
        assert torch.equal(targets, split.targets[index])


def test_mini_batches_may_be_those_of_any_sampler():
    split = numbered()
    sampler = ClassSampler(split.targets, 8, 4)
    batches = SampledBatches(split, 8, sampler=sampler)
    drawn = sampler.draw(6, make_generator("a"))
    found = list(batches.epoch(make_generator("a")))
    assert not batches.balanced
    assert torch.equal(torch.stack([inputs[:, 0] for inputs, _ in found]), drawn)
    for _, targets in found:
        assert torch.equal(targets[::4].repeat_interleave(4), targets)


def test_sampled_mini_batches_are_augmented_if_asked_for():
    images, generator, again = ToyImages(), make_generator("a"), make_generator("a")
    sampler = ClassSampler(images.targets, 8, 4)
    plain = list(SampledBatches(images, 8, sampler=sampler).epoch(make_generator("a")))
    assert images.augmentations == 0
    batches = SampledBatches(images, 8, sampler=sampler, augment=True)
    found = list(batches.epoch(generator))
    assert images.augmentations == len(found) == 8
    drawn = sampler.draw(8, again)
    for (inputs, targets), index in zip(found, drawn, strict=True):
        assert torch.equal(inputs, images.augmented(index, again))
        assert torch.equal(targets, images.targets[index])
    assert torch.equal(generator.get_state(), again.get_state())
    for (inputs, targets), index in zip(plain, drawn, strict=True):
        assert torch.equal(inputs, images.inputs[index])
        assert torch.equal(targets, images.targets[index])


def test_an_epoch_has_drawn_its_examples_before_the_first_mini_batch_is_used():
    generator, batches = make_generator("a"), SampledBatches(numbered(), 8)
    epoch = batches.epoch(generator)
    before = generator.get_state()
    next(epoch)
    assert not torch.equal(generator.get_state(), before)
    after = generator.get_state()
    assert len(list(epoch)) == 5
    assert torch.equal(generator.get_state(), after)


def test_a_small_split_is_one_mini_batch():
    batches = SampledBatches(numbered(5), 8)
    assert batches.steps_per_epoch == 1
    (pair,) = batches.epoch(make_generator("a"))
    assert [len(part) for part in pair] == [8, 8]


def test_examples_may_be_read_as_they_are_needed():
    lazy = LazySplit([(torch.tensor([float(i)]), i % 3) for i in range(50)])
    for batches in (SampledBatches(lazy, 8), SampledBatches(lazy, 8, balanced=True)):
        for inputs, targets in batches.draw(3, make_generator("a")):
            assert torch.equal(inputs[:, 0].long() % 3, targets)
    objects = LazySplit([(torch.zeros(1), "boxes")] * 9)
    with pytest.raises(DataError, match=r"labels in one tensor \[N\], got list"):
        SampledBatches(objects, 2)


def test_every_example_comes_once_in_a_permutation_and_the_rest_is_dropped():
    images = ToyImages()
    images.inputs = torch.arange(64.0).reshape(64, 1, 1, 1).expand(-1, 1, 8, 8)
    batches = PermutedBatches(images, 24)
    found = list(batches.epoch(make_generator("a")))
    places = torch.cat([inputs[:, 0, 0, 0].long() for inputs, _ in found])
    assert (batches.steps_per_epoch, len(found), images.augmentations) == (2, 2, 2)
    assert len(places.unique()) == len(places) == 48
    for inputs, targets in found:
        assert torch.equal(images.targets[inputs[:, 0, 0, 0].long()], targets)
    assert torch.equal(places, torch.randperm(64, generator=make_generator("a"))[:48])


def test_augmentation_is_drawn_batch_by_batch_from_the_generator():
    generator, images = make_generator("a"), ToyImages()
    found = list(PermutedBatches(images, 24).epoch(generator))
    again = make_generator("a")
    order = torch.randperm(64, generator=again)[:48]
    for (inputs, _), index in zip(found, order.split(24), strict=True):
        assert torch.equal(inputs, images.augmented(index, again))
    assert torch.equal(generator.get_state(), again.get_state())


def test_any_number_of_mini_batches_may_be_drawn():
    permuted = PermutedBatches(ToyImages(), 24)
    for batches in (permuted, SampledBatches(numbered(), 8, balanced=True)):
        for count in (0, 1, 5):
            drawn = list(batches.draw(count, make_generator("a")))
            assert len(drawn) == count
            assert all(len(targets) == batches.batch_size for _, targets in drawn)


def test_plain_inputs_are_the_first_as_they_are():
    images = ToyImages()
    assert torch.equal(PermutedBatches(images, 24).plain(3), images.inputs[:3])
    assert images.augmentations == 0
    assert torch.equal(SampledBatches(numbered(), 8).plain(2), torch.tensor([[0], [1]]))


def test_impossible_mini_batches_are_refused():
    with pytest.raises(ConfigError, match=r"mini-batch of 65 needs as many .* got 64"):
        PermutedBatches(ToyImages(), 65)
    with pytest.raises(ConfigError, match="batch_size >= 2, got batch_size=1"):
        SampledBatches(numbered(), 1)
    ones = Split(torch.zeros(4, 1), torch.ones(4).long())
    with pytest.raises(DataError, match=r"at least two classes, got only class \[1\]"):
        SampledBatches(ones, 2, balanced=True)
    sampler = NaturalSampler(50, 8)
    message = "needs balanced=False and its own batch_size, 8, got balanced="
    with pytest.raises(ConfigError, match=f"{message}False and 9"):
        SampledBatches(numbered(), 9, sampler=sampler)
    with pytest.raises(ConfigError, match=f"{message}True and 8"):
        SampledBatches(numbered(), 8, sampler=sampler, balanced=True)
    with pytest.raises(ConfigError, match=r"a method `augmented`, got Split"):
        SampledBatches(numbered(), 8, augment=True)

"""Splits, samplers, and seeds from names."""

import pytest
import torch

from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import derive_seed, make_generator
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Split
from tests.metricopt.drawn import seeded
from tests.metricopt.tasks.test_class_sampling import LABELS, of_classes, of_groups

TARGETS = torch.tensor([2] * 50 + [0] * 3 + [1] * 7)


def test_a_split_counts_its_examples_and_refuses_unequal_lengths_and_emptiness():
    assert len(Split(torch.zeros(4, 2), torch.zeros(4))) == 4
    with pytest.raises(DataError, match="got 4 inputs and 3 targets"):
        Split(torch.zeros(4, 2), torch.zeros(3))
    with pytest.raises(DataError, match="at least one example, got an empty one"):
        Split(torch.zeros(0, 2), torch.zeros(0))


SAMPLERS = {
    "natural": (60, lambda size: NaturalSampler(60, size)),
    "balanced": (60, lambda size: BalancedSampler(TARGETS, size)),
    "classes": (len(LABELS), lambda size: of_classes(size, 4)),
    "groups": (len(LABELS), lambda size: of_groups(size, 4)),
}


@pytest.mark.parametrize(("examples", "make"), SAMPLERS.values(), ids=SAMPLERS)
def test_every_sampler_draws_every_example_by_the_generator_alone(examples, make):
    sampler = make(16)
    index = sampler.draw(300, seeded())
    assert (index.shape, index.dtype) == ((300, 16), torch.int64)
    assert torch.equal(index.unique(), torch.arange(examples))
    assert torch.equal(index, sampler.draw(300, seeded()))
    assert not torch.equal(index[:5], sampler.draw(5, seeded(1)))
    assert not torch.equal(index[0], index[1])
    assert sampler.draw(0, seeded()).shape == (0, 16)
    with pytest.raises(ConfigError, match="batch_size must be at least 1, got 0"):
        make(0)


def test_natural_batches_have_the_natural_shares():
    classes = TARGETS[NaturalSampler(60, 50).draw(2_000, seeded())]
    for label, count in ((0, 3), (1, 7), (2, 50)):
        share = (classes == label).double().mean().item()
        assert share == pytest.approx(count / 60, abs=0.01)


@pytest.mark.parametrize(("batch_size", "counts"), [(12, (4, 4, 4)), (7, (3, 2, 2))])
def test_every_balanced_batch_has_every_class_equally_often(batch_size, counts):
    index = BalancedSampler(TARGETS, batch_size).draw(100, seeded())
    for row in TARGETS[index]:
        assert tuple(torch.bincount(row, minlength=3).tolist()) == counts


def test_balanced_batches_draw_uniformly_within_a_class():
    index = BalancedSampler(TARGETS, 60).draw(1_000, seeded())
    shares = torch.bincount(index.flatten(), minlength=60) / (1_000 * 60)
    for label in range(3):
        members = shares[label == TARGETS]
        expected = torch.full_like(members, 1 / (3 * len(members)))
        torch.testing.assert_close(members, expected, rtol=0.15, atol=0.0)


def test_balanced_batches_need_two_classes():
    with pytest.raises(DataError, match=r"at least two classes, got only class \[1\]"):
        BalancedSampler(torch.ones(5, dtype=torch.long), 4)


def test_seeds_depend_on_every_name_and_on_their_order():
    names = [("a", "b"), ("b", "a"), ("ab",), ("a", "b", 0), ("a", "b", 1), ("a b",)]
    seeds = [derive_seed(*each) for each in names]
    assert len(set(seeds)) == len(names)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed("a", 1) == derive_seed("a", "1")
    # Python's own hash of a string differs between processes; this must not.
    assert derive_seed("task", "method", 3) == 506886596869226078


def test_generators_of_the_same_names_draw_the_same_numbers():
    first, second = make_generator("run", 1), make_generator("run", 1)
    assert first.initial_seed() == derive_seed("run", 1)
    assert torch.equal(torch.rand(3, generator=first), torch.rand(3, generator=second))

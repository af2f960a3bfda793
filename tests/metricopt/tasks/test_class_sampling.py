"""Mini-batches of classes: which there are, how often, and what is refused."""

import itertools

import pytest
import torch

from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import ClassSampler, HierarchicalSampler

# Labels with gaps, in no order: 8 classes of 2 to 9 examples, in 3 super-categories.
SIZES = {3: 4, 5: 2, 8: 9, 10: 4, 11: 6, 20: 5, 21: 4, 40: 7}
SUPER = {3: 7, 5: 7, 8: 7, 10: 2, 11: 2, 20: 4, 21: 4, 40: 4}
LABELS = [label for label, size in SIZES.items() for _ in range(size)]
ORDER = torch.randperm(len(LABELS), generator=make_generator("order"))
TARGETS = torch.tensor(LABELS)[ORDER]
GROUPS = torch.tensor([SUPER[label] for label in TARGETS.tolist()])


def of_classes(batch_size, per_class):
    return ClassSampler(TARGETS, batch_size, per_class)


def of_groups(batch_size, per_class):
    return HierarchicalSampler(TARGETS, GROUPS, batch_size, per_class)


@pytest.mark.parametrize("make", [of_classes, of_groups])
class TestBoth:
    @pytest.mark.parametrize(("batch_size", "per_class"), [(4, 1), (8, 2), (24, 6)])
    def test_classes_differ_and_so_do_their_examples(self, make, batch_size, per_class):
        index = make(batch_size, per_class).draw(200, make_generator("a"))
        for row in index.view(200, -1, per_class):
            classes = TARGETS[row]
            assert (classes == classes[:, :1]).all()
            assert len(classes[:, 0].unique()) == batch_size // per_class
            for examples, label in zip(row, classes[:, 0].tolist(), strict=True):
                different = len(examples.unique())
                assert different == min(per_class, SIZES[label])
                # No example comes twice before every other has come once.
                counts = examples.unique(return_counts=True)[1]
                assert counts.max() <= -(-per_class // different)

    def test_all_examples_of_a_class_are_equally_frequent(self, make):
        index = make(8, 2).draw(20_000, make_generator("a"))
        counts = index.flatten().bincount(minlength=len(TARGETS)).double()
        for label in SIZES:
            own = counts[label == TARGETS]
            torch.testing.assert_close(own / own.mean(), torch.ones_like(own), **WIDE)

    def test_what_no_mini_batch_can_be_is_refused(self, make):
        message = "a multiple of per_class, for two classes or more, got "
        for size, each in ((10, 4), (8, 0), (4, 4), (4, 8)):
            got = f"batch_size={size} and per_class={each}"
            with pytest.raises(ConfigError, match=message + got):
                make(size, each)


WIDE = {"rtol": 0.1, "atol": 0.0}


def test_all_sets_of_classes_are_equally_frequent():
    index = of_classes(6, 2).draw(56_000, make_generator("a"))
    classes = TARGETS[index[:, ::2]].sort(1).values
    sets, counts = classes.unique(dim=0, return_counts=True)
    assert len(sets) == len(list(itertools.combinations(SIZES, 3))) == 56
    torch.testing.assert_close(counts / 1000, torch.ones(56), rtol=0.2, atol=0.0)


def test_half_of_the_classes_are_of_each_of_two_super_categories():
    index = of_groups(8, 2).draw(30_000, make_generator("a"))
    groups = GROUPS[index].view(-1, 2, 4)
    assert (groups == groups[:, :, :1]).all()
    pairs = groups[:, :, 0].sort(1).values.unique(dim=0, return_counts=True)
    assert pairs[0].tolist() == [[2, 4], [2, 7], [4, 7]]
    torch.testing.assert_close(pairs[1] / 10_000, torch.ones(3), **WIDE)
    classes = TARGETS[index[:, ::2]].flatten().bincount()[list(SIZES)] / 40_000
    # Two classes out of a super-category's three, or out of two.
    members = torch.tensor([[*SUPER.values()].count(SUPER[label]) for label in SIZES])
    torch.testing.assert_close(classes, 1 / members, **WIDE)


def test_too_few_classes_are_named():
    with pytest.raises(DataError, match="holds 9 different classes, got examples of 8"):
        of_classes(18, 2)
    with pytest.raises(DataError, match="holds 2 different classes, got examples of 1"):
        ClassSampler(torch.ones(5).long(), 4, 2)
    message = "3 classes of a super-category, got one with 2"
    with pytest.raises(DataError, match=message):
        of_groups(12, 2)


def test_super_categories_that_are_none_are_named():
    message = r"multiple of 2 per_class .* batch_size=6 an"
    with pytest.raises(ConfigError, match=message):
        of_groups(6, 2)
    with pytest.raises(DataError, match="at least two super-categories, got 1"):
        HierarchicalSampler(TARGETS, torch.zeros_like(GROUPS), 8, 2)
    with pytest.raises(DataError, match="per example, got 40 for 41 examples"):
        HierarchicalSampler(TARGETS, GROUPS[1:], 8, 2)
    mixed = GROUPS.clone()
    mixed[(TARGETS == 8).nonzero()[0]] = 2
    with pytest.raises(DataError, match="in one super-category, got 1 classes in sev"):
        HierarchicalSampler(TARGETS, mixed, 8, 2)

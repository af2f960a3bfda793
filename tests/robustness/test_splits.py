"""Observed examples that were learned, and classes with other shares, are told."""

from dataclasses import replace

import pytest
import torch

from metricopt import FinetuneOptions, LazySplit, Split
from metricopt.reading.splits import differing_shares
from metricopt.tasks.clusters import clusters_of
from tests.metricopt.digits_network import pretrained
from tests.metricopt.drawn import seeded
from tests.metricopt.improving import OBSERVE, TRAIN, found_by_default, improve

FIRST, SECOND = torch.rand(200, 30), torch.rand(100, 30)
LABELS = torch.zeros(300, dtype=torch.long)


def doubts_of_repeats(train, observe):
    return clusters_of(observe, train, None).doubts


def split(*parts):
    inputs = torch.cat(parts)
    return Split(inputs, LABELS[: len(inputs)])


def test_repeated_examples_are_counted():
    observe = split(SECOND[:90], FIRST[100:110])
    (told,) = doubts_of_repeats(split(FIRST), observe)
    assert told.startswith("10 of 100 observed examples are in train, too: the network")
    named = Split({"a": FIRST, "b": FIRST + 1}, LABELS[:200])
    half = Split({"a": FIRST[:50], "b": FIRST[50:100] + 1}, LABELS[:50])
    assert not doubts_of_repeats(named, half)  # only one of two inputs is the same
    half = FIRST[:50].bfloat16()
    assert doubts_of_repeats(split(half), split(half.clone()))
    both = Split({"b": FIRST[:50] + 1, "a": FIRST[:50]}, LABELS[:50])
    assert doubts_of_repeats(named, both)


def test_what_is_alike_in_a_few_numbers_only_is_not_the_same():
    wide = torch.zeros(100, 5_000)
    wide[:, 1] = torch.arange(100)  # not among the numbers that are looked at first
    assert not doubts_of_repeats(split(wide[:50]), split(wide[50:]))
    assert doubts_of_repeats(split(wide[:50]), split(wide[40:90]))


def test_tables_of_few_values_repeat_by_themselves():
    draws = torch.randint(2, (1_200, 6), generator=seeded()).float()
    labels = torch.zeros(1_200, dtype=torch.long)
    for count in (200, 600, 1_100):
        train = Split(draws[:count], labels[:count])
        found = clusters_of(Split(draws[count:], labels[count:]), train, None)
        assert found.of is None and not found.doubts


def test_copies_within_observe_are_told():
    copies = split(SECOND[:60], SECOND[:20], SECOND[:20])
    (told,) = doubts_of_repeats(split(FIRST), copies)
    assert told.startswith("60 of 100 observed examples are copies of others: the")
    assert told.endswith("copies stay together where the gain is estimated.")
    of = clusters_of(copies, split(FIRST), None).of
    assert torch.equal(of[60:80], of[:20]) and torch.equal(of[80:], of[:20])
    assert len(of.unique()) == 60
    names = {"a": torch.arange(100)}
    named = clusters_of(replace(copies, columns=names), split(FIRST), "a")
    assert len(named.of.unique()) == 100 and not named.doubts


def test_copies_are_no_excuse_for_examples_of_train():
    copies, known = doubts_of_repeats(split(FIRST), split(FIRST[:20].repeat(5, 1)))
    assert "are copies of others" in copies and "are in train, too" in known


@pytest.mark.parametrize(
    "observe",
    [
        split(SECOND),  # others
        split(torch.cat([SECOND, FIRST[:1]])),  # one by chance
        Split(SECOND[:, :5], LABELS[:100]),
        LazySplit([(row, 0) for row in FIRST]),  # not in memory
    ],
)
def test_others_are_not_told(observe):
    assert not doubts_of_repeats(split(FIRST), observe)


def test_a_call_tells_of_both():
    options = FinetuneOptions("loss-only", queries=18, steps=4, progress=False)
    found = improve(pretrained(1), options)
    assert not [text for text in found.warnings if "in train, too" in text]
    again = improve(pretrained(1), options, train=OBSERVE)
    told = [text for text in again.warnings if "in train, too" in text]
    assert told[0].startswith(f"{len(OBSERVE[1])} of {len(OBSERVE[1])} observed exam")
    assert not again.kind


def test_shares_that_differ_are_named():
    train, observe = TRAIN[1], OBSERVE[1]
    told = differing_shares(train, observe)
    counts = [torch.bincount(labels, minlength=10) for labels in (train, observe)]
    shares = [count / count.sum() for count in counts]
    place = int((shares[0] - shares[1]).abs().argmax())
    assert told.startswith(
        f"class {place} with {shares[1][place]:.1%} of the examples (train: "
        f"{shares[0][place]:.1%})"
    )
    assert told.count("class") == 3
    assert not differing_shares(observe, observe.flip(0))
    assert not differing_shares(train.float(), observe.float())
    few = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 1, 1, 1])
    assert not differing_shares(*few)  # chance


def test_the_summary_says_which_data_are_of_this_kind():
    found = found_by_default(14)
    assert found.kind == differing_shares(TRAIN[1], OBSERVE[1])
    *_, last = found.summary().splitlines()
    assert last.startswith(f"On other data of this kind, with {found.kind}, f1_score ")
    *_, last = replace(found, kind="").summary().splitlines()
    assert last.startswith("On other data of this kind f1_score ")

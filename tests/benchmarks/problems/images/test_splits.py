"""Image problems: splits, long tails and label noise."""

from dataclasses import replace

import pytest
import torch

from benchmarks.problems.images.images import as_bytes, load_splits, long_tail, noisy
from benchmarks.problems.images.settings import ImageProblem
from metricopt.errors import ConfigError, DataError

DIGITS = ImageProblem("digits", "full")


def test_splits_are_disjoint_and_hold_everything():
    problem = load_splits(DIGITS, 0)
    parts = (problem.train, problem.observe, problem.test)
    assert [len(part.targets) for part in parts] == [1294, 144, 359]
    assert [len(part) for part in parts] == [1294, 144, 359]
    counts = sum(torch.bincount(part.targets) for part in parts)
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_replicate_decides_the_split():
    one, same, other = (load_splits(DIGITS, r).test.targets for r in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)


def pixels(images):
    """Bytes of all images: what is normalised by the train split's statistics."""
    return (images.batch(slice(None))[:, 0] * images.scale + images.centre).round()


def test_observe_and_test_stay_as_they_are():
    plain = load_splits(DIGITS, 0)
    changed = load_splits(replace(DIGITS, imbalance=10, label_noise=0.4), 0)
    for name in ("observe", "test"):
        one, other = getattr(plain, name), getattr(changed, name)
        assert torch.equal(one.targets, other.targets)
        assert torch.equal(pixels(one), pixels(other))
    assert len(changed.train.targets) < len(plain.train.targets)


def test_fewer_images_are_the_first_of_the_train_split():
    whole, some = (load_splits(replace(DIGITS, max_examples=n), 0) for n in (None, 50))
    assert torch.equal(some.train.targets, whole.train.targets[:50])
    assert torch.equal(pixels(some.train), pixels(whole.train.first(50)))
    assert torch.equal(some.test.targets, whole.test.targets)


def test_a_long_tail_falls_exponentially():
    targets = torch.arange(10).repeat(1000)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randperm(10_000, generator=generator)
    kept = long_tail(rows, targets, 100, generator)
    counts = torch.bincount(targets[kept])
    assert counts.tolist() == [round(1000 * 100 ** (-c / 9)) for c in range(10)]
    assert len(kept.unique()) == len(kept)
    # In random order, not class by class.
    assert len(targets[kept[:50]].unique()) > 3


def test_no_imbalance_keeps_the_rows():
    rows = torch.tensor([3, 1, 2])
    assert long_tail(rows, torch.zeros(4).long(), 1, torch.Generator()) is rows


def test_noise_replaces_a_share_by_other_classes():
    labels = torch.arange(10).repeat(500)
    changed = noisy(labels, 10, 0.4, torch.Generator().manual_seed(0))
    wrong = changed != labels
    assert int(wrong.sum()) == 2000
    shifts = ((changed - labels) % 10)[wrong]
    assert torch.bincount(shifts, minlength=10)[1:].min() > 150


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"label_noise": -0.1}, r"label_noise in \[0, 1\), got label_noise=-0.1"),
        ({"label_noise": 1.0}, "got label_noise=1.0"),
        ({"imbalance": 0.5}, "imbalance >= 1, got imbalance=0.5"),
    ],
)
def test_impossible_problems_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        replace(DIGITS, **settings)


def test_observe_must_hold_every_class(monkeypatch):
    monkeypatch.setattr("benchmarks.problems.images.images.OBSERVE_SHARE", 0.002)
    with pytest.raises(DataError, match="observe split of digits must hold every"):
        load_splits(DIGITS, 0)


def test_bytes_are_the_images():
    values = torch.rand(2, 3, 4, 5)
    found = as_bytes(values)
    assert found.dtype == torch.uint8 and found.shape == (2, 4, 5, 3)
    assert torch.equal(found[1, 2, 3], (values[1, :, 2, 3] * 255).round().byte())
    assert as_bytes(found) is found

"""Nearest neighbours against golden vectors, a naive loop, ties, and what is kept."""

import gc
import math
import weakref

import pytest
import torch
from torch.nn.functional import normalize

from metricopt.errors import DataError, MetricError
from metricopt.metrics import neighbours as module
from metricopt.metrics.neighbours import neighbours, ranks_of
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded
from tests.metricopt.watched import watch

CASES = list(load_golden("recall_at_k"))


def clustered(examples, classes, size=8, seed=0, dtype=torch.float64):
    """Embeddings [N, E] around centres, and labels: at least two of every class."""
    generator = seeded(seed)
    labels = torch.arange(examples) % classes
    labels[2 * classes :] = torch.randint(
        classes, labels[2 * classes :].shape, generator=generator
    )
    labels = labels[torch.randperm(examples, generator=generator)]
    centres = torch.randn(classes, size, generator=generator, dtype=dtype)
    noise = torch.randn(examples, size, generator=generator, dtype=dtype)
    return centres[labels] + noise, labels


def naive(embeddings, labels):
    """Nearest rank and average precision at R of every query, by sorted lists."""
    unit = normalize(embeddings.double(), dim=1)
    ranks, precisions = [], []
    for query, vector in enumerate(unit):
        gallery = [i for i in range(len(unit)) if i != query]
        # On ties, other classes first.
        own = labels == labels[query]
        gallery.sort(key=lambda i, own=own: (-float(vector @ unit[i]), own[i]))
        hits = [bool(own[i]) for i in gallery]
        places = range(1, sum(hits) + 1)
        ranks.append(hits.index(True))
        shares = (sum(hits[:i]) / i for i in places if hits[i - 1])
        precisions.append(sum(shares) / len(places))
    return torch.tensor(ranks), torch.tensor(precisions, dtype=torch.float64)


def assert_naive(embeddings, labels):
    found = neighbours(embeddings, labels)
    ranks, precision = naive(embeddings, labels)
    assert torch.equal(found.nearest_rank, ranks)
    torch.testing.assert_close(found.precision, precision)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recalls_are_the_golden_ones(case):
    found = neighbours(case.inputs["embeddings"], case.inputs["labels"])
    recalls = {str(k): found.recall(k) for k in case.settings["k"]}
    expected = case.expected["recall_at_k"]
    assert recalls.keys() == expected.keys()
    for k, recall in recalls.items():
        assert_golden(recall, expected[k], case.tolerance)
    average = sum(recalls.values()) / len(recalls)
    assert_golden(average, case.expected["average_recall"], case.tolerance)


@pytest.mark.parametrize("held", [1, 500, 2**24])
@pytest.mark.parametrize(
    ("examples", "classes"), [(2, 1), (4, 2), (60, 30), (61, 7), (90, 2), (30, 1)]
)
def test_ranks_and_precisions_are_those_of_a_naive_loop(
    examples, classes, held, monkeypatch
):
    monkeypatch.setattr(module, "HELD", held)
    assert_naive(*clustered(examples, classes, seed=classes))


def test_labels_may_be_any_integers():
    embeddings, labels = clustered(40, 5)
    expected = neighbours(embeddings, labels)
    renamed = torch.tensor([-7, 10**12, 3, 0, -1])[labels]
    found = neighbours(embeddings, renamed)
    assert torch.equal(found.nearest_rank, expected.nearest_rank)
    torch.testing.assert_close(found.precision, expected.precision)
    small = neighbours(embeddings, labels.to(torch.uint8))
    assert torch.equal(small.nearest_rank, expected.nearest_rank)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_and_whole_numbers_are_compared_in_single_precision(kind):
    embeddings, labels = clustered(120, 20)
    assert_naive(embeddings.to(kind), labels)
    embeddings, labels = clustered(50, 10)
    assert_naive((100 * embeddings).long(), labels)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_lengths_do_not_matter(scale):
    embeddings, labels = clustered(50, 10, dtype=torch.float32)
    expected = neighbours(embeddings, labels)
    factors = scale * torch.rand(50, 1, generator=seeded(0))
    found = neighbours(factors * embeddings, labels)
    assert torch.equal(found.nearest_rank, expected.nearest_rank)


def test_on_ties_other_classes_come_first():
    east, north = [1.0, 0.0], [0.0, 1.0]
    embeddings = torch.tensor([east, east, east, north, north, north])
    found = neighbours(embeddings, torch.tensor([0, 0, 1, 1, 2, 2]))
    # Query 0: example 2 ties with example 1. Query 2: its own class is farther than
    # both at its place, and ties with two.
    assert found.nearest_rank.tolist() == [1, 1, 4, 4, 1, 1]
    assert found.precision.tolist() == [0.0] * 6


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("examples", [6, 97, 1001])
def test_embeddings_that_are_all_the_same_find_nothing(kind, examples):
    generator = seeded(examples)
    one = torch.randn(1, 67, generator=generator, dtype=kind)
    lengths = 1 + torch.rand(examples, 1, generator=generator, dtype=kind)
    labels = torch.arange(examples) % 3
    found = neighbours(lengths * one, labels)
    others = examples - torch.bincount(labels)[labels]
    assert torch.equal(found.nearest_rank, others)
    assert found.precision.sum() == 0


def test_what_cannot_be_compared_is_refused():
    embeddings, labels = clustered(20, 4)
    message = r"'retrieval' needs embeddings of finite length above 0, got length {} "
    for value, shown in ((0.0, "0"), (math.nan, "nan"), (math.inf, "inf")):
        wrong = embeddings.clone()
        wrong[7] = value
        with pytest.raises(MetricError, match=message.format(shown) + "for example 7"):
            ranks_of(wrong, labels)
    lonely = labels.clone()
    lonely[3] = 99
    message = r"two examples or more of every class, got one of class 99 \(1 such"
    with pytest.raises(DataError, match=message):
        ranks_of(embeddings, lonely)
    for targets in (labels.double(), labels > 1, labels.tolist(), labels[:, None]):
        with pytest.raises(DataError, match="'mine' needs integer labels of shape"):
            ranks_of(embeddings, targets, name="mine")


@pytest.fixture
def passes(monkeypatch):
    """A note for every row whose neighbours were searched."""
    return watch(monkeypatch, module, "neighbours")


def stack(rows=3):
    """Embeddings [B, N, E] and labels [N]."""
    labels = clustered(30, 6)[1]
    return torch.stack([clustered(30, 6, seed=b)[0] for b in range(rows)]), labels


def test_rows_are_searched_one_by_one():
    outputs, labels = stack()
    found = ranks_of(outputs, labels)
    assert len(found) == 3
    for row, of_row in zip(outputs, found, strict=True):
        (alone,) = ranks_of(row, labels)
        assert torch.equal(of_row.nearest_rank, alone.nearest_rank)
        assert torch.equal(of_row.precision, alone.precision)
    assert ranks_of(outputs[:0], labels) == ()


def test_the_last_neighbours_are_remembered(passes):
    outputs, labels = stack()
    first = ranks_of(outputs, labels)
    assert ranks_of(outputs, labels, name="another") is first
    assert len(passes) == 3
    other = outputs.clone()
    assert ranks_of(other, labels) is not first
    assert ranks_of(other, labels.clone()) is not first
    assert len(passes) == 9
    # Only the last ones.
    assert ranks_of(outputs, labels) is not first
    assert len(passes) == 12


@pytest.mark.parametrize("by_view", [False, True])
def test_a_change_in_place_is_seen(passes, by_view):
    outputs, labels = stack()
    before = ranks_of(outputs, labels)
    (outputs[0] if by_view else outputs).neg_()
    after = ranks_of(outputs, labels)
    assert len(passes) == 6
    if not by_view:  # where all are turned round, every cosine is as it was
        assert torch.equal(before[0].nearest_rank, after[0].nearest_rank)
    outputs[0, :15].neg_()
    changed = ranks_of(outputs, labels)[0]
    assert torch.equal(
        changed.nearest_rank, neighbours(outputs[0], labels).nearest_rank
    )
    assert not torch.equal(changed.nearest_rank, after[0].nearest_rank)


def test_a_change_of_labels_is_seen(passes):
    outputs, labels = stack(1)
    ranks_of(outputs, labels)
    labels.copy_(labels.flip(0))
    (found,) = ranks_of(outputs, labels)
    assert torch.equal(found.nearest_rank, neighbours(outputs[0], labels).nearest_rank)
    assert len(passes) == 2


def test_tensors_are_not_kept_alive():
    outputs, labels = stack()
    ranks_of(outputs, labels)
    watched = weakref.ref(outputs), weakref.ref(labels)
    del outputs, labels
    gc.collect()
    assert [each() for each in watched] == [None, None]


def test_tensors_without_versions_are_not_remembered(passes):
    with torch.inference_mode():
        outputs, labels = stack()
        first = ranks_of(outputs, labels)
        outputs[:, :15].neg_()
        second = ranks_of(outputs, labels)
    assert len(passes) == 6
    assert not torch.equal(first[0].nearest_rank, second[0].nearest_rank)


def test_what_fails_is_not_remembered(passes):
    outputs, labels = stack()
    outputs[2, 0] = 0
    for _ in range(2):
        with pytest.raises(MetricError, match="finite length above 0"):
            ranks_of(outputs, labels)
    assert len(passes) == 6


def test_gradients_are_not_needed():
    embeddings, labels = clustered(30, 6)
    found = neighbours(embeddings.requires_grad_(), labels)
    assert not found.precision.requires_grad

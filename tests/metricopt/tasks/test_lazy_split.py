"""Examples of every form, in memory or read as they are needed."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from metricopt.adapters.film import FiLM
from metricopt.errors import DataError
from metricopt.reading.callables import make_metric
from metricopt.tasks.encoding import EncodedSplit, UncutSplit, encode
from metricopt.tasks.examples import BATCH_SIZE, Examples, LazySplit, as_split
from metricopt.tasks.judge import Judge
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.sampling import NaturalSampler, Split
from tests.metricopt import adapter_networks as networks
from tests.metricopt.drawn import draw, labels, seeded
from tests.metricopt.watched import watch

IMAGES, LABELS = draw(20, 3, 8, 8), labels(20, classes=5)
CPU = torch.device("cpu")


class Watched(Dataset):
    """Images that note which of them are read."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, place):
        self.read.append(place)
        return IMAGES[place], int(LABELS[place])


def film(kind):
    return FiLM(networks.randomise(kind()), IMAGES[:2], size=6)


def task_of(adapter, split, metric="mcr"):
    return NetworkTask(
        adapter,
        nn.CrossEntropyLoss(),
        make_metric(metric),
        train=split,
        observe=split,
        drawing=Drawing(NaturalSampler(20, 4)),
    )


def test_a_batch_is_that_of_the_split_in_memory():
    lazy, split = LazySplit(Watched()), Split(IMAGES, LABELS)
    assert isinstance(lazy, Examples)
    assert isinstance(split, Examples)
    assert len(lazy) == len(split) == 20
    assert torch.equal(lazy.targets, split.targets)
    for index in (slice(None), slice(3, 9), torch.tensor([7, 7, 0])):
        assert torch.equal(lazy.batch(index), split.batch(index))


def test_targets_are_gathered_once_and_inputs_when_asked():
    images = Watched()
    lazy = LazySplit(images)
    assert images.read == list(range(20))
    images.read.clear()
    lazy.batch(torch.tensor([4, 2]))
    assert lazy.to(CPU).targets is not None
    assert images.read == [4, 2]
    LazySplit(images, targets=LABELS)
    assert images.read == [4, 2]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([0, 1, 2], torch.tensor([0, 1, 2])),
        ([0.5, 1.5, 2.0], torch.tensor([0.5, 1.5, 2.0])),
        ([torch.tensor(1)] * 3, torch.tensor([1, 1, 1])),
        ([torch.eye(2)] * 3, torch.eye(2).repeat(3, 1, 1)),
    ],
)
def test_numbers_and_equal_tensors_become_one_tensor(targets, expected):
    pairs = [(torch.zeros(2), target) for target in targets]
    found = LazySplit(pairs).targets
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "targets",
    [
        [{"boxes": torch.zeros(count, 4)} for count in range(3)],
        [torch.zeros(count, 4) for count in range(3)],
        ["cat", "dog", "cat"],
    ],
)
def test_other_targets_stay_as_they_are(targets):
    pairs = [(torch.zeros(2), target) for target in targets]
    found = LazySplit(pairs).targets
    assert all(one is other for one, other in zip(found, targets, strict=True))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LazySplit([]), "at least one example, got an empty one"),
        (lambda: LazySplit(iter([1])), "a length and places, got list_iterator"),
        (lambda: LazySplit([torch.zeros(2)]), r"a pair \(input, target\), got Tensor"),
        (lambda: LazySplit([(0, 1)], targets=[1, 2]), "1 inputs and 2 targets"),
        (
            lambda: LazySplit([(torch.zeros(n), 0) for n in (2, 3)]).batch(slice(2)),
            r"must have one shape, got \(2,\), \(3,\)",
        ),
    ],
)
def test_what_is_no_split_is_refused(make, text):
    with pytest.raises(DataError, match=text):
        make()


def test_a_lazy_split_is_not_read_by_as_split():
    images = Watched()
    lazy = LazySplit(images, targets=LABELS)
    assert isinstance(as_split(lazy, name="train", device=CPU), LazySplit)
    assert images.read == []
    # A data set is read once, as it always was.
    assert isinstance(as_split(images, name="train", device=CPU), Split)
    assert images.read == list(range(20))


def test_a_network_that_can_be_cut_reads_every_example_once():
    images, adapter = Watched(), film(networks.ResNet)
    assert adapter.is_cut
    encoded = encode(adapter, LazySplit(images, targets=LABELS))
    expected = encode(adapter, Split(IMAGES, LABELS))
    assert isinstance(encoded, EncodedSplit)
    for one, other in zip(encoded.features, expected.features, strict=True):
        torch.testing.assert_close(one, other)
    # The first is looked at before, for its size.
    assert images.read == [0, *range(20)]


def test_a_network_that_cannot_be_cut_leaves_the_examples_where_they_are(monkeypatch):
    monkeypatch.setattr("metricopt.tasks.encoding.EXAMPLES_ENCODED", 4)
    images, adapter = Watched(), film(networks.Dynamic)
    assert not adapter.is_cut
    encoded = encode(adapter, LazySplit(images, targets=LABELS))
    assert isinstance(encoded, UncutSplit)
    assert set(images.read) == {0, 1, 2, 3}
    in_memory = encode(adapter, Split(IMAGES, LABELS))
    assert in_memory.features[0] is IMAGES


@pytest.mark.parametrize("kind", [networks.ResNet, networks.Dynamic])
def test_losses_and_costs_are_those_of_examples_in_memory(kind):
    adapter, phi = film(kind), 0.3 * draw(3, 6)
    tasks = [
        task_of(adapter, split)
        for split in (Split(IMAGES, LABELS), LazySplit(Watched()))
    ]
    one, other = (task.losses(phi, seeded()) for task in tasks)
    torch.testing.assert_close(one, other)
    one, other = (task.observe(phi) for task in tasks)
    assert torch.equal(one, other)
    one, other = (task.observe_train(phi, seeded(1)) for task in tasks)
    assert torch.equal(one, other)


def test_a_query_reads_the_examples_once_for_all_rows_and_a_few_at_a_time(monkeypatch):
    images, adapter = Watched(), film(networks.Dynamic)
    judge = Judge(adapter, encode(adapter, LazySplit(images, targets=LABELS)))
    calls = watch(monkeypatch, adapter, "predict")
    monkeypatch.setattr("metricopt.tasks.encoding.NUMBERS_READ", 7 * IMAGES[0].numel())
    phi = 0.3 * draw(3, 6)
    judge.outputs(phi)
    images.read.clear()
    values = judge.values(make_metric("mcr"), phi)
    assert images.read == list(range(20))
    assert {len(features[0]) for features, _ in calls} == {7, 6}
    whole = Judge(adapter, encode(adapter, Split(IMAGES, LABELS)))
    assert torch.equal(values, whole.values(make_metric("mcr"), phi))


def test_parts_of_a_part_are_those_of_the_whole():
    adapter = film(networks.Dynamic)
    split = encode(adapter, LazySplit(TensorDataset(IMAGES, LABELS)))
    part = split.part(torch.tensor([5, 9, 2, 11])).part(torch.tensor([3, 0]))
    assert torch.equal(part.batch(slice(None))[0], IMAGES[[11, 5]])
    assert torch.equal(part.targets, LABELS[[11, 5]])


INPUTS = torch.arange(2.0 * (BATCH_SIZE + 3)).view(-1, 2)
TARGETS = torch.arange(BATCH_SIZE + 3) % 3


class Augmented(Dataset):
    """Gives plain numbers as labels, and other inputs each time it is asked."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index >= len(self):
            raise IndexError
        return torch.rand(2), index


class Stream(IterableDataset):
    def __init__(self, examples: int) -> None:
        self.examples = examples

    def __iter__(self):
        return zip(INPUTS[: self.examples], TARGETS[: self.examples], strict=True)


FORMS = {
    "pair": (INPUTS, TARGETS),
    "list": [INPUTS, TARGETS],
    "split": Split(INPUTS, TARGETS),
    "data set": TensorDataset(INPUTS, TARGETS),
    "stream": Stream(len(TARGETS)),
    "loader": DataLoader(TensorDataset(INPUTS, TARGETS), 50),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_split(form):
    split = as_split(FORMS[form], name="train", device=CPU)
    assert torch.equal(split.inputs, INPUTS)
    assert torch.equal(split.targets, TARGETS)


def test_batches_are_joined_and_augmentation_is_drawn_once():
    batches = DataLoader([(INPUTS[:9], TARGETS[:9])] * 2, None)
    split = as_split(batches, name="train", device=CPU)
    assert torch.equal(split.inputs, INPUTS[:9].repeat(2, 1))
    assert torch.equal(split.targets, TARGETS[:9].repeat(2))
    split = as_split(Augmented(), name="train", device=CPU)
    assert split.inputs.shape == (5, 2)
    assert torch.equal(split.targets, torch.arange(5))


def test_columns_of_a_lazy_split_are_an_argument():
    examples = [(*pair, {"group": 1}) for pair in zip(IMAGES, LABELS, strict=True)]
    with pytest.raises(
        DataError, match=r"got tuple of .*; a lazy split takes columns as col"
    ):
        LazySplit(examples)

"""Data that make no batches, or do not end, are refused before the first query."""

import itertools
from collections.abc import Iterable, Iterator

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from metricopt import DataError, finetune
from metricopt.reading import examples as reading
from metricopt.tasks.sampling import Sampler
from tests.robustness.forms import Listed
from tests.robustness.refused import (
    EXAMPLES,
    INPUTS,
    LABELS,
    SPLITS,
    given,
    outcome,
    refusal,
)

RAGGED = [(torch.zeros(3 + place % 2), 0) for place in range(6)]
SINGLE = list(zip(INPUTS, LABELS, strict=True))
NUMBERED = [(row, int(label)) for row, label in SINGLE]
BOTH = DataLoader([EXAMPLES, (INPUTS[:, :4], LABELS)], None)
NONE, DROPPED = Listed([]), DataLoader(Listed(SINGLE), 99, drop_last=True)
WRONG = {
    "ragged": (Listed(RAGGED), r"of one .* got \[3\] at entry 0 and \[4\] at ent"),
    "ragged loader": (
        DataLoader(Listed(RAGGED), 2),
        r"of one shape, .* \[3\] at entry 0",
    ),
    "ragged batches": (BOTH, r"have one shape, got \[4\], \[6\]; pad or crop them"),
    "objects": (Listed([(object(), 0)] * 3), r"of one shape, .*<class 'object'>"),
    "no batch size": (
        DataLoader(Listed(SINGLE), None),
        "single examples: give the load",
    ),
    "numbers, no batch size": (DataLoader(Listed(NUMBERED), None), "come in batches"),
    "another length": ((INPUTS, LABELS[:50]), "as many .*, got 60 inputs and 50"),
    "empty": (DataLoader(NONE, 4), "split is empty"),
    "all dropped": (DROPPED, "split is empty"),
    "a cycle": (itertools.cycle(SINGLE), "or loader of such pairs, got cycle"),
    "inputs alone": (Listed([row for row, _ in SINGLE]), "of such pairs, got Tensor"),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", WRONG)
def test_data_that_make_no_split_are_refused(name: str, split: str) -> None:
    examples, text = WRONG[name]
    error = refusal(DataError, text, **{split: examples})
    assert f"the {split} split" in str(error)


def test_an_error_of_the_data_set_itself_stays_what_it_is() -> None:
    class Broken(Listed):
        def __getitem__(self, place: int) -> object:
            raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match=r"^the disk is gone$"):
        finetune(**given(train=Broken(SINGLE)))


class Stream(IterableDataset):
    """Examples of a stream, which need not end."""

    def __init__(self, examples: Iterable[tuple[Tensor, int]] | None = None) -> None:
        endless = itertools.repeat((torch.zeros(6), 1))
        self.examples = endless if examples is None else examples

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return iter(self.examples)


class Lying(Stream):
    """Says that there are ten."""

    def __len__(self) -> int:
        return 10


class Vast(Dataset):
    """More examples than any memory holds."""

    def __len__(self) -> int:
        return 10**15

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return torch.zeros(6), 1


class Forever(Sampler):
    """Places without an end."""

    def __init__(self) -> None:
        super().__init__(1)

    def draw(self, rows: int, generator: torch.Generator) -> Tensor:
        return torch.zeros(rows, 1, dtype=torch.int64)

    def __iter__(self) -> Iterator[int]:
        return itertools.repeat(0)


ENDLESS = {
    "stream": Stream(),
    "loader": DataLoader(Stream(), 16),
    "sampler": DataLoader(Listed(SINGLE), 16, sampler=Forever()),
    "wrong length": DataLoader(Lying(), 16),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.filterwarnings("ignore:Length of IterableDataset")
def test_endless_data_are_refused(
    name: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read until the memory was full."""
    monkeypatch.setattr(reading, "MOST_EXAMPLES", 2000)
    text = (
        rf"the {split} split must come to an end, but goes on after 2\d\d\d examples: "
    )
    assert refusal(DataError, f"{text}cut it, or give", **{split: ENDLESS[name]})


def test_endless_data_of_large_examples_are_refused_by_their_size() -> None:
    text = "must fit into 8 GiB, got 8.* GiB or more: cut it, or pass a LazySplit"
    large = torch.zeros(1).expand(2**28)  # 1 GiB that takes no memory
    stream = Stream(itertools.repeat((large[None], torch.zeros(1, dtype=torch.int64))))
    assert refusal(DataError, text, observe=DataLoader(stream, None))


def test_data_larger_than_the_memory_are_refused_at_the_first_batch() -> None:
    text = r"the train split must fit into .* GiB, got 2.98e\+07 GiB or more: cut it, "
    assert refusal(DataError, text, train=Vast())


def test_a_finite_stream_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_EXAMPLES", 60)
    found, expected = outcome(train=DataLoader(Stream(SINGLE), 20)), outcome()
    assert torch.equal(found[0], expected[0])

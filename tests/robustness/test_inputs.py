"""Wrong inputs, labels and data are refused before any query, with their split."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from metricopt import DataError, LazySplit, Split, finetune
from metricopt.reading import examples as reading
from metricopt.tasks.examples import as_split
from metricopt.tasks.row_losses import Loss, batched_loss
from metricopt.tasks.sampling import Sampler
from tests.metricopt import adapter_networks
from tests.metricopt.drawn import draw, labels
from tests.robustness.forms import Listed
from tests.robustness.refused import (
    EXAMPLES,
    IMAGES,
    INPUTS,
    LABELS,
    SPLITS,
    given,
    outcome,
    refusal,
    slopes,
    spoilt,
)


def convolutional() -> nn.Module:
    return adapter_networks.randomise(adapter_networks.ResNet())


def embedding() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(24, 3)).eval()


CONVERT = r": .*convert the inputs to torch.float32"
PIXELS, FIRST = IMAGES[0], r": its first layer, "
WRONG = {
    "float64": (INPUTS.double(), r"float64 \[4, 6\]" + CONVERT),
    "int64": (INPUTS.long(), r"int64 \[4, 6\]" + CONVERT),
    "uint8": (INPUTS.abs().byte(), r"uint8 \[4, 6\]" + CONVERT),
    "features": (INPUTS[:, :5], r"float32 \[4, 5\]: .* float32 \[12, 6\] weights; "),
    "an axis more": (INPUTS[:, None], rf"float32 \[4, 1, 6\]{FIRST}Linear"),
    "an axis less": (INPUTS[:, 0], rf"float32 \[4\]{FIRST}Linear '0'"),
    "images float64": (PIXELS.double(), rf"float64 .*{CONVERT}; "),
    "images int64": (PIXELS.long(), rf"int64 .*{CONVERT}; "),
    "images uint8": (PIXELS.abs().byte(), rf"uint8 .*{CONVERT}; "),
    "grey": (PIXELS[:, :1], r"float32 \[4, 1, 8, 8\]: .* float32 \[\d+, 3, 3, 3\] we"),
    "channels last": (PIXELS.movedim(1, 3), r"float32 \[4, 8, 8, 3\]: its first"),
    "flat images": (PIXELS.flatten(1), rf"float32 \[4, 192\]{FIRST}Conv2d"),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", WRONG)
def test_inputs_that_do_not_suit_the_network_are_refused(name: str, split: str) -> None:
    inputs, text = WRONG[name]
    text = f"the network cannot run on the {split} inputs, {text}"
    if len(inputs) == len(INPUTS):
        error = refusal(DataError, text, **{split: (inputs, LABELS)})
        assert isinstance(error.__cause__, Exception)
        return
    images = dict.fromkeys(SPLITS, IMAGES) | {split: (inputs, IMAGES[1])}
    error = refusal(DataError, text, model=convolutional(), **images)
    assert isinstance(error.__cause__, RuntimeError)


def test_numbers_are_no_indices() -> None:
    text = rf"float32 \[4, 6\]{FIRST}Embedding '0', .*convert the inputs to torch.int"
    assert refusal(DataError, text, model=embedding())


# Numbers that are none.


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_inputs_that_are_not_finite_are_refused(split: str, value: float) -> None:
    """One NaN among the images made the metric of all of them silently wrong."""
    text = (
        f"the {split} inputs must be finite, .* in 1 of 60 examples, first in exam.* 50"
    )
    assert refusal(DataError, text, **{split: (spoilt(INPUTS, 50, value), LABELS)})


class Changing(nn.Module):
    """Changes its inputs before a network gets them."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change, self.network = change, adapter_networks.mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.change(x))


def test_a_network_that_knows_what_to_do_with_nan_may_have_it() -> None:
    holes = (spoilt(INPUTS, 50, float("nan")), LABELS)
    filled = (spoilt(INPUTS, 50, 0.0), LABELS)
    model = Changing(lambda x: x.nan_to_num(0.0))
    phi, value = outcome(model=model, train=holes, observe=holes)
    expected = outcome(train=filled, observe=filled)
    assert torch.equal(phi, expected[0])
    assert value == expected[1]


@pytest.mark.parametrize("split", SPLITS)
def test_outputs_that_are_nan_are_refused(split: str) -> None:
    inputs = INPUTS.clone()
    inputs[9] = 0.0
    text = rf"must return numbers, got NaN for \d+ of \d+ {split} examples, first for"
    model = Changing(lambda x: x / x.sum(1, keepdim=True))
    assert refusal(DataError, text, model=model, **{split: (inputs, LABELS)})


def test_a_network_with_a_weight_that_is_nan_is_refused() -> None:
    model = adapter_networks.mlp()
    model[0].weight.data[0, 0] = float("nan")
    text = "numbers, got NaN for 128 of 128 train examples, first for exam.* 0"
    assert refusal(DataError, f"must return {text}", model=model)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32"])
def test_labels_of_any_whole_type_give_what_int64_gives(kind: str) -> None:
    """Cross-entropy refused int32 labels with a traceback."""
    examples = (INPUTS, LABELS.to(getattr(torch, kind)))
    data = TensorDataset(*examples)
    for form in (examples, data, LazySplit(data)):
        split = as_split(form, name="train", device=LABELS.device)
        assert split.targets.dtype == torch.int64
        for loss in (nn.CrossEntropyLoss(), functional.cross_entropy):
            expected = slopes(loss, Split(INPUTS, LABELS))
            assert all(map(torch.equal, slopes(loss, split), expected))
    assert outcome(train=examples, observe=examples)[1] == outcome()[1]


SMOOTH = partial(functional.cross_entropy, label_smoothing=0.1)
ENTROPY = nn.CrossEntropyLoss()
SHIFTED = [(loss, 1) for loss in (ENTROPY, functional.cross_entropy, SMOOTH)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("loss", "shift"), [*SHIFTED, (nn.NLLLoss(), 1), (ENTROPY, -1)]
)
def test_labels_out_of_range_are_refused(loss: Loss, shift: int, split: str) -> None:
    got = f"{split} targets from {shift} to {2 + shift}"
    text = rf"on 3 outputs needs targets in \[0, 2\], got {got}"
    assert refusal(DataError, text, loss=loss, **{split: (INPUTS, LABELS + shift)})


def test_labels_that_the_loss_ignores_are_not_out_of_range() -> None:
    ignored = LABELS.where(LABELS > 0, 255)
    by_function = partial(functional.cross_entropy, ignore_index=255)
    for loss in (nn.CrossEntropyLoss(ignore_index=255), by_function):
        assert outcome(loss=loss, train=(INPUTS, ignored))[0].isfinite().all()
    text = r"got train targets from 1 to 255"
    assert refusal(DataError, text, train=(INPUTS, ignored))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("value", [2.0, -1.0, float("nan")])
def test_targets_of_binary_cross_entropy_are_shares(split: str, value: float) -> None:
    """Labels 0 to 9 of one logit were followed without a word."""
    targets = functional.one_hot(LABELS, 3).float()
    wrong = dict.fromkeys(SPLITS, (INPUTS, targets))
    wrong[split] = (INPUTS, spoilt(targets, 5, value))
    text = rf"BCEWithLogitsLoss on 3 outputs needs targets in \[0, 1\], got {split}"
    assert refusal(DataError, text, loss=nn.BCEWithLogitsLoss(), **wrong)


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64"])
def test_dense_labels_stay_as_small_as_they_are(kind: str) -> None:
    dense = labels(20, 8, 8).to(getattr(torch, kind))
    split = as_split((draw(20, 3, 8, 8), dense), name="train", device=dense.device)
    assert split.targets.dtype == dense.dtype


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_of_any_whole_type_are_taken_by_batched_losses(kind) -> None:
    outputs, targets = draw(2, 8, 3, 4, 4), labels(2, 8, 4, 4)
    for loss in (nn.CrossEntropyLoss(), functional.cross_entropy):
        found = batched_loss(loss)(outputs, targets.to(kind))
        assert torch.equal(found, batched_loss(loss)(outputs, targets))


RAGGED = [(torch.zeros(3 + place % 2), 0) for place in range(6)]
SINGLE = list(zip(INPUTS, LABELS, strict=True))
NUMBERED = [(row, int(label)) for row, label in SINGLE]
BOTH = DataLoader([EXAMPLES, (INPUTS[:, :4], LABELS)], None)
NONE, DROPPED = Listed([]), DataLoader(Listed(SINGLE), 99, drop_last=True)
NO_SPLIT = {
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
    "an empty pair": ((INPUTS[:0], LABELS[:0]), "split is empty"),
    "all dropped": (DROPPED, "split is empty"),
    "a cycle": (itertools.cycle(SINGLE), "or loader of such pairs, got cycle"),
    "inputs alone": (Listed([row for row, _ in SINGLE]), "of such pairs, got Tensor"),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", NO_SPLIT)
def test_data_that_make_no_split_are_refused(name: str, split: str) -> None:
    examples, text = NO_SPLIT[name]
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

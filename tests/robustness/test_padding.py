"""Texts of unequal length, scales that open late, compiled networks, masked arrays."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from metricopt import DataError, auto_adapter, finetune, load_phi, tune
from metricopt.metrics.base import ValueRange
from metricopt.tasks.examples import as_split
from metricopt.tasks.padding import padded
from tests.metricopt.drawn import seeded
from tests.robustness.heads import network

CPU = torch.device("cpu")
PAD = 7


def texts(length, count=8, *, own_padding=True):
    """Texts of token numbers from 8 on; every other one is a token shorter."""
    ids = torch.randint(8, 20, (count, length), generator=seeded(length))
    mask = torch.ones_like(ids)
    if own_padding:
        mask[::2, -1], ids[::2, -1] = 0, PAD
    return {"input_ids": ids, "attention_mask": mask}


class Reader(nn.Module):
    """A network of texts that reads what its mask says."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask[..., None].float()
        return self.head((self.embedding(input_ids) * mask).sum(1) / mask.sum(1))


def batches(*lengths, **settings):
    labels = torch.tensor([0, 1] * 4)
    return [texts(length, **settings) | {"labels": labels} for length in lengths]


class Loader(torch.utils.data.DataLoader):
    """A loader whose batches are those that were made."""

    def __init__(self, made):
        super().__init__(range(len(made)))
        self.made = made

    def __iter__(self):
        return iter(self.made)


def test_texts_are_padded_to_the_longest_batch():
    made = batches(5, 9, 7)
    split = as_split(Loader(made), name="train", device=CPU)
    ids, mask = split.inputs["input_ids"], split.inputs["attention_mask"]
    assert ids.shape == mask.shape == (24, 9)
    assert (ids[mask == 0] == PAD).all() and (ids[mask == 1] >= 8).all()
    torch.manual_seed(0)
    model = Reader()
    each = [model(batch["input_ids"], batch["attention_mask"]) for batch in made]
    torch.testing.assert_close(model(ids, mask), torch.cat(each))
    found = finetune(
        model,
        train=Loader(made),
        observe=Loader(made),
        loss=nn.CrossEntropyLoss(),
        metric="mcr",
        queries=5,
        progress=False,
    )
    wrong = torch.cat(each).argmax(1) != split.targets
    assert found.metric_before == pytest.approx(wrong.float().mean().item())


def test_texts_without_padding_of_their_own_are_padded_by_nought():
    pairs = [
        (texts(length, own_padding=False), torch.ones(8, length, dtype=torch.long))
        for length in (4, 6)
    ]
    (first, labels), (second, _) = padded(pairs)
    assert first["input_ids"].shape == second["input_ids"].shape == (8, 6)
    assert (first["input_ids"][:, 4:] == 0).all()
    assert (first["attention_mask"].sum(1) == 4).all()
    assert (labels[:, 4:] == -100).all() and (labels[:, :4] == 1).all()
    assert padded(pairs[:1]) == pairs[:1]


def test_other_sequences_are_refused_with_a_remedy():
    made = [(torch.zeros(8, length), torch.zeros(8).long()) for length in (4, 6)]
    with pytest.raises(DataError, match=r"Texts in a dict .* are padded here"):
        as_split(Loader(made), name="train", device=CPU)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0, 5000, 20], (0, 1e4)),
        ([0, 0, -5000], (0, 1e4)),
        ([0, 0.5, 3], (0, 1)),
        ([20, 5000], (0, 100)),
        ([-20, 5000], (-99, 1)),
        ([1.5e308, -1e308], (0, 1e307)),
        ([0, -1.7e308], (0, 1e307)),
    ],
)
def test_the_first_value_that_is_not_the_low_end_decides_the_scale(values, ends):
    scale = ValueRange(None, None, 0.0)
    costs = []
    for value in values:
        assert scale.take(value) == value
        costs.append((value - scale.low) / (scale.high - scale.low))
    assert (scale.low, scale.high) == ends
    again = [(value - scale.low) / (scale.high - scale.low) for value in values]
    assert costs == again
    assert np.isfinite(costs).all()


@pytest.mark.parametrize(
    ("promised", "values", "ends"),
    [
        ((None, 1e15), [0.567, 0.7], (0, 1)),
        ((None, 1e15), [0, 0.567], (0, 1)),
        ((-1e15, None), [0.567, 0.7], (0, 1)),
        ((-1e12, 1e12), [0.5, -0.5], (0, 1)),
        ((0, 1e9), [1e9, 1e9 - 3], (1e9 - 10, 1e9)),
        ((0, None), [3e-9, 0.5], (0, 1)),
        ((0, 1), [3e-9, 0.5], (0, 1)),
        ((None, 5000), [0.5, 20], (0, 5000)),
        ((None, 1e12), [-232, -155], (-1000, 0)),
        ((-1e12, None), [232, 155], (1, 1001)),
    ],
)
def test_ends_that_are_promised_far_away_are_no_scale(promised, values, ends):
    scale = ValueRange(*promised, 0.0)
    assert [scale.take(value) for value in values] == values
    assert (scale.low, scale.high) == pytest.approx(ends)
    for end, beyond in zip(promised, (-2, 2), strict=True):
        assert end is None or scale.take(beyond * max(1, abs(end))) is None


@pytest.mark.parametrize("low", [None, -1e9, -1, 0])
@pytest.mark.parametrize("high", [None, 0.5, 1, 1e9])
@pytest.mark.parametrize("least", [0.0, -1.0])
def test_costs_of_earlier_values_stay(low, high, least):
    drawn = np.random.default_rng(0)
    values = [-1e9, -5, -1, -0.5, 0, 0.3, 0.5, 1, 5, 1e9 - 5, 1e9]
    least_value = -np.inf if low is None else low
    kept = [v for v in values if least_value <= v <= (np.inf if high is None else high)]
    for _ in range(300):
        scale, costs, found = ValueRange(low, high, least), [], []
        for value in drawn.choice(kept, 4):
            found.append(scale.take(value))
            assert found[-1] == pytest.approx(value, rel=1e-5)
            costs.append((found[-1] - scale.low) / (scale.high - scale.low))
        again = [(value - scale.low) / (scale.high - scale.low) for value in found]
        assert costs == pytest.approx(again, abs=1e-9), found


def test_phi_is_loaded_into_a_compiled_network(tmp_path):
    inputs, labels = torch.rand(60, 64, generator=seeded()), torch.arange(60) % 10
    model = network(64, 10)
    split = inputs, labels
    found = finetune(
        model,
        train=split,
        observe=split,
        loss=nn.CrossEntropyLoss(),
        metric="mcr",
        queries=6,
        progress=False,
    )
    found.save(tmp_path / "phi.safetensors")
    compiled = torch.compile(model, backend="eager")
    adapter = auto_adapter(compiled, inputs[:4])
    phi = load_phi(tmp_path / "phi.safetensors", adapter)
    assert torch.equal(phi, found.phi)
    moved = torch.linspace(-1, 1, adapter.size)
    expected = adapter.predict(adapter.encode(inputs), moved[None])[0]
    with adapter.attach(moved):
        torch.testing.assert_close(compiled(inputs), expected)


def test_masked_values_are_no_zeros():
    inputs = np.ma.array(np.ones((6, 3), dtype=np.float32), mask=np.eye(6, 3))
    with pytest.raises(
        DataError, match="arrays must hold numbers, got 3 masked values"
    ):
        as_split((inputs, np.arange(6)), name="train", device=CPU)
    whole = np.ma.array(np.ones((6, 3), dtype=np.float32))
    assert as_split((whole, np.arange(6)), name="train", device=CPU).inputs.sum() == 18


class Pairs(torch.utils.data.Dataset):
    """A data set of arrays."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, place):
        return self.inputs[place], self.targets[place]


def test_masked_values_of_data_sets_and_columns_are_no_numbers():
    inputs, targets = np.ones((6, 3), dtype=np.float32), np.arange(6)
    hidden, some = np.ma.array(inputs, mask=np.eye(6, 3)), np.arange(6) == 4
    plain = Pairs(inputs, targets)
    for data in (
        Pairs(hidden, targets),
        Pairs(inputs, np.ma.array(targets, mask=some)),
    ):
        with pytest.raises(DataError, match="examples of a data set must hold numbers"):
            as_split(data, name="train", device=CPU)
    assert torch.equal(
        as_split(plain, name="train", device=CPU).targets, torch.arange(6)
    )
    columns = {"amount": np.ma.array(np.ones(6), mask=some)}
    text = "column 'amount' of the train split must hold numbers, got 1 masked values"
    with pytest.raises(DataError, match=text):
        as_split((inputs, targets, columns), name="train", device=CPU)


def test_masked_outputs_are_refused_by_tune():
    outputs = np.ma.array(np.linspace(-1, 1, 60), mask=np.arange(60) == 7)
    with pytest.raises(DataError, match="got 1 masked values: fill them with numbers"):
        tune(outputs, np.arange(60) % 2, "f1", progress=False)

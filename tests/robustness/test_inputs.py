"""Wrong inputs are refused before the first query; the message names the split."""

import pytest
import torch
from torch import Tensor, nn

from metricopt import DataError
from tests.metricopt import adapter_networks
from tests.robustness.refused import (
    IMAGES,
    INPUTS,
    LABELS,
    SPLITS,
    outcome,
    refusal,
    spoilt,
)


def convolutional() -> nn.Module:
    return adapter_networks.randomise(adapter_networks.ResNet())


def embedding() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(24, 3)).eval()


ROWS = {
    "float64": (
        INPUTS.double(),
        r"float64 \[4, 6\]: .*convert the inputs to torch.float32",
    ),
    "int64": (INPUTS.long(), r"int64 \[4, 6\]: .*convert the inputs to torch.float32"),
    "uint8": (
        INPUTS.abs().byte(),
        r"uint8 \[4, 6\]: .*convert the inputs to torch.float32",
    ),
    "features": (INPUTS[:, :5], r"float32 \[4, 5\]: .* float32 \[12, 6\] weights; "),
    "an axis more": (INPUTS[:, None], r"float32 \[4, 1, 6\]: its first layer, Linear"),
    "an axis less": (INPUTS[:, 0], r"float32 \[4\]: its first layer, Linear '0'"),
}
PICTURES = {
    "float64": (
        IMAGES[0].double(),
        r"float64 .*: convert the inputs to torch.float32; ",
    ),
    "int64": (IMAGES[0].long(), r"int64 .*: convert the inputs to torch.float32; "),
    "uint8": (
        IMAGES[0].abs().byte(),
        r"uint8 .*: convert the inputs to torch.float32; ",
    ),
    "grey": (
        IMAGES[0][:, :1],
        r"float32 \[4, 1, 8, 8\]: .* float32 \[\d+, 3, 3, 3\] we",
    ),
    "channels last": (IMAGES[0].movedim(1, 3), r"float32 \[4, 8, 8, 3\]: its first"),
    "flat": (IMAGES[0].flatten(1), r"float32 \[4, 192\]: its first layer, Conv2d"),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_do_not_suit_the_network_are_refused(name: str, split: str) -> None:
    inputs, text = ROWS[name]
    text = f"the network cannot run on the {split} inputs, {text}"
    error = refusal(DataError, text, **{split: (inputs, LABELS)})
    assert isinstance(error.__cause__, Exception)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", PICTURES)
def test_images_that_do_not_suit_the_network_are_refused(name: str, split: str) -> None:
    inputs, text = PICTURES[name]
    wrong = {"train": IMAGES, "observe": IMAGES, split: (inputs, IMAGES[1])}
    text = f"the network cannot run on the {split} inputs, {text}"
    error = refusal(DataError, text, model=convolutional(), **wrong)
    assert isinstance(error.__cause__, RuntimeError)


def test_numbers_are_no_indices() -> None:
    text = (
        r"float32 \[4, 6\]: its first layer, Embedding '0', "
        r".*convert the inputs to torch.int"
    )
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


def test_a_network_that_knows_what_to_do_with_nan_may_have_it() -> None:
    class Filled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = adapter_networks.mlp()

        def forward(self, x: Tensor) -> Tensor:
            return self.network(x.nan_to_num(0.0))

    holes = (spoilt(INPUTS, 50, float("nan")), LABELS)
    phi, value = outcome(model=Filled(), train=holes, observe=holes)
    filled = (INPUTS.clone(), LABELS)
    filled[0][50, 1] = 0.0
    expected = outcome(train=filled, observe=filled)
    assert torch.equal(phi, expected[0])
    assert value == expected[1]


class Dividing(nn.Module):
    """Divides by its inputs: NaN where all of them are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.network = adapter_networks.mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x / x.sum(1, keepdim=True))


@pytest.mark.parametrize("split", SPLITS)
def test_outputs_that_are_nan_are_refused(split: str) -> None:
    inputs = INPUTS.clone()
    inputs[9] = 0.0
    text = rf"must return numbers, got NaN for \d+ of \d+ {split} examples, first for"
    assert refusal(DataError, text, model=Dividing(), **{split: (inputs, LABELS)})


def test_a_network_with_a_weight_that_is_nan_is_refused() -> None:
    model = adapter_networks.mlp()
    with torch.no_grad():
        model[0].weight[0, 0] = float("nan")
    text = (
        "must return numbers, got NaN for 128 of 128 train examples, first for exam.* 0"
    )
    assert refusal(DataError, text, model=model)

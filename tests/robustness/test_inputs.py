"""Wrong inputs are refused before the first query; the message names the split."""

from collections.abc import Callable

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

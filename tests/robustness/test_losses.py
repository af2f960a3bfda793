"""A wrong loss is refused before the first query, by one sentence with its cause."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt import ConfigError, LossError
from tests.robustness.refused import (
    BINARY,
    EXAMPLES,
    INPUTS,
    LABELS,
    ONE,
    given,
    one_output,
    refusal,
    squared,
)


class MishapError(Exception):
    """What only the user's own code raises."""


class Rows:
    """A loss that brings a batched form of the wrong shape."""

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, targets)

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs.mean(2)


def raising(outputs: Tensor, targets: Tensor) -> Tensor:
    raise MishapError("not today")


class Case(NamedTuple):
    """A wrong loss.

    Attributes:
        loss: what is given.
        text: pattern of the message.
        said: what else the message says.
        cause: class of the exception that the error comes from.
        changes: other arguments.
    """

    loss: object
    text: str
    said: str = ""
    cause: type[Exception] | None = None
    changes: Mapping[str, object] = MappingProxyType({})


def returned(loss: object, got: str) -> Case:
    return Case(loss, f"must return a scalar tensor, got {got}")


def cut_off(loss: object) -> Case:
    said = "got a value without gradient"
    return Case(loss, "must be differentiable in the outputs", said)


def not_finite(loss: object, got: str) -> Case:
    said = "for the untouched network on outputs float32 [128, 3]"
    return Case(loss, f"must be finite with a finite gradient, got {got}", said)


def raised(loss: object, cause: type[Exception], text: str, data: object) -> Case:
    said = "must make a scalar of outputs float32 [128, 3] and targets"
    return Case(loss, text, said, cause, {"train": data, "observe": BINARY})


def broadcast(loss: object, text: str) -> Case:
    """Outputs [n, 1] against targets [n] were compared all with all, silently."""
    said = "outputs float32 [128, 1] and targets float32 [128]"
    return Case(loss, text, said, changes={"train": ONE, "model": one_output()})


ENTROPY = nn.CrossEntropyLoss()
SIZE = "UserWarning: Using a target size"
CASES = {
    "one loss per example": returned(
        nn.CrossEntropyLoss(reduction="none"), r"float32 \[128\]; take the mean of it"
    ),
    "one number in a vector": returned(lambda out, _: out.mean()[None], r"float32 \[1"),
    "a float": returned(lambda *_: 0.5, "0.5"),
    "nothing": returned(lambda *_: None, "None"),
    "a text": returned(lambda *_: "low", "'low'"),
    "a bool": returned(lambda *_: True, "True"),
    "a tuple": returned(
        lambda outputs, _: (outputs.mean(), outputs.std(), outputs.mean()),
        "a tuple of 3: Tensor, Tensor, Tensor",
    ),
    "a number of hits": returned(
        lambda out, y: (out.argmax(1) == y).sum(), r"int64 \[\]"
    ),
    "rows of its own": Case(
        Rows(), r"row_losses of Rows must return \[B\], .* \[1, 128\]"
    ),
    "detached": cut_off(lambda out, y: functional.cross_entropy(out.detach(), y)),
    "made anew": cut_off(lambda outputs, _: torch.tensor(outputs.std().item())),
    "accuracy": cut_off(lambda out, y: (out.argmax(1) == y).float().mean()),
    "of its own weight": cut_off(lambda *_: torch.ones((), requires_grad=True) * 2),
    "nan": not_finite(lambda outputs, _: outputs.sum() * float("nan"), "nan"),
    "inf": not_finite(
        lambda outputs, _: outputs.sum() * float("inf"), "(inf|-inf|nan)"
    ),
    "log of zero": not_finite(lambda outputs, _: (outputs * 0).sum().log(), "-inf"),
    "nan gradient": not_finite(
        lambda out, _: (out - out.detach()).square().sum().sqrt(),
        "0 with gradients up to nan",
    ),
    "more arguments": raised(
        lambda outputs, targets, weight: outputs.sum(),
        TypeError,
        "missing 1 .* argument: 'weight'",
        EXAMPLES,
    ),
    "no arguments": raised(
        lambda: torch.zeros(()), TypeError, "takes 0 positional", EXAMPLES
    ),
    "its own": raised(raising, MishapError, "MishapError: not today", EXAMPLES),
    "floats": raised(ENTROPY, RuntimeError, r"float32 \[128\], but raised", ONE),
    "an output per label": raised(
        nn.BCEWithLogitsLoss(),
        RuntimeError,
        r"int64 \[128\] from 0 to 1, but raised RuntimeError",
        BINARY,
    ),
    "out of range": raised(
        nn.MultiMarginLoss(), RuntimeError, "raised RuntimeError", (INPUTS, LABELS + 3)
    ),
    "torch's": broadcast(nn.MSELoss(), SIZE),
    "as a function": broadcast(functional.l1_loss, SIZE),
    "own": broadcast(squared, "squared must compare every output with its own target"),
    "own sum": broadcast(
        lambda out, y: (y - out).abs().sum(), "they are broadcast; give both one shape"
    ),
    "in a partial": broadcast(partial(nn.MSELoss.forward, nn.MSELoss()), SIZE),
}
UNCALLED = {
    "class": (nn.CrossEntropyLoss, "the class CrossEntropyLoss: pass CrossEntropyLos"),
    "own class": (Rows, r"the class Rows: pass Rows\(\)"),
    "name": ("cross_entropy", "a function of outputs and targets, got 'cross_entropy'"),
    "nothing": (None, "a function of outputs and targets, got None"),
    "number": (torch.zeros(()), r"a function of outputs and targets, got float32 \[\]"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_loss_is_refused_with_what_is_wrong(name: str) -> None:
    case = CASES[name]
    error = refusal(LossError, case.text, loss=case.loss, **case.changes)
    assert isinstance(error, ConfigError)
    assert case.said in str(error)
    assert case.cause is None or isinstance(error.__cause__, case.cause)


@pytest.mark.parametrize("name", UNCALLED)
def test_what_cannot_be_called_is_refused_before_the_model_is_touched(
    name: str,
) -> None:
    loss, text = UNCALLED[name]
    model = given()["model"].train()
    assert refusal(LossError, f"the loss must be .*{text}", loss=loss, model=model)
    assert model.training

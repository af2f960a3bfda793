"""Wrong losses are refused before the first query, and right ones change no data."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt import ConfigError, LazySplit, LossError, Split
from tests.robustness.refused import (
    BINARY,
    EXAMPLES,
    INPUTS,
    LABELS,
    ONE,
    given,
    one_output,
    outcome,
    refusal,
    slopes,
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


class OneWay(torch.autograd.Function):
    """The mean of the outputs, without a backward pass."""

    @staticmethod
    def forward(ctx: object, outputs: Tensor) -> Tensor:
        return outputs.mean()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        raise MishapError("not this way")


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
    "no backward pass": Case(
        lambda outputs, _: OneWay.apply(outputs),
        "must have a gradient on outputs float32",
        "its backward pass raised MishapError: not this way",
        MishapError,
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


# Right losses are taken, tried once, and cannot change anything outside themselves.

FINE = {
    "aligned": lambda outputs, targets: squared(outputs[:, 0], targets),
    "aligned targets": lambda outputs, targets: squared(outputs, targets[:, None]),
    "all pairs on purpose": lambda outputs, targets: functional.softplus(
        -(outputs[:, 0] - outputs) * (targets - targets[:, None]).sign()
    ).mean(),
    "without targets": lambda outputs, _: outputs.sigmoid().std(),
    "zero gradient": lambda outputs, targets: (outputs - outputs.detach()).pow(2).sum(),
}


@pytest.mark.parametrize("name", FINE)
def test_right_losses_of_one_output_are_not_refused(name: str) -> None:
    changes = {"model": one_output(), "train": ONE, "observe": BINARY}
    phi, value = outcome(loss=FINE[name], **changes)
    assert phi.isfinite().all()
    assert 0 <= value <= 1


def test_the_loss_is_tried_once() -> None:
    calls: list[int] = []

    def counted(outputs: Tensor, targets: Tensor) -> Tensor:
        calls.append(len(outputs))
        return functional.cross_entropy(outputs, targets)

    outcome(loss=counted)
    assert calls == [128]


def edits(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of shifted outputs, all in place."""
    targets.remainder_(2)
    return functional.cross_entropy(outputs.mul_(2).sub_(1), targets)


def test_a_loss_may_edit_what_it_is_given() -> None:
    """It could not edit outputs, and targets of one row broke those of the others."""
    train = Split(INPUTS.clone(), LABELS.clone())

    def leaves_alone(outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs.mul(2).sub(1), targets.remainder(2))

    assert all(map(torch.equal, slopes(edits, train), slopes(leaves_alone, train)))
    assert torch.equal(train.inputs, INPUTS)
    assert torch.equal(train.targets, LABELS)


def test_objects_of_the_data_set_are_not_edited() -> None:
    """A loss that edits targets in a list changed those of the data set."""
    boxes = [{"label": LABELS[at].clone()} for at in range(60)]

    def emptied(outputs: Tensor, targets: list) -> Tensor:
        found = torch.stack([target.pop("label") for target in targets])
        return functional.cross_entropy(outputs, found)

    losses, _ = slopes(emptied, LazySplit(list(zip(INPUTS, boxes, strict=True))))
    expected, _ = slopes(functional.cross_entropy, Split(INPUTS, LABELS))
    assert torch.allclose(losses, expected)
    assert [box["label"] for box in boxes] == LABELS.tolist()


def test_a_loss_that_changes_its_mind_is_refused_where_it_does() -> None:
    calls: list[int] = []

    def fickle(outputs: Tensor, targets: Tensor) -> object:
        calls.append(1)
        value = functional.cross_entropy(outputs, targets)
        return value.item() if len(calls) > 2 else value

    with pytest.raises(LossError, match="fickle must return a scalar tensor, got "):
        slopes(fickle, Split(*EXAMPLES))
    assert len(calls) == 3

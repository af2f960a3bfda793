"""A wrong loss is refused before the first query, by one sentence with its cause."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt import (
    ConfigError,
    LossError,
)
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


def weighted(outputs: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, weight)


def without_arguments() -> Tensor:
    return torch.zeros(())


def raising(outputs: Tensor, targets: Tensor) -> Tensor:
    raise MishapError("not today")


def steep(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - outputs.detach()).square().sum().sqrt()


def summed(outputs: Tensor, targets: Tensor) -> Tensor:
    return (targets - outputs).abs().sum()


def accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(1) == targets).float().mean()


def hits(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(1) == targets).sum()


RETURNED = {
    "one loss per example": (
        nn.CrossEntropyLoss(reduction="none"),
        r"must return a scalar tensor, got float32 \[128\]; take the mean of it",
    ),
    "one number in a vector": (
        lambda outputs, targets: outputs.mean()[None],
        r"must return a scalar tensor, got float32 \[1\]",
    ),
    "a float": (lambda *_: 0.5, "must return a scalar tensor, got 0.5"),
    "nothing": (lambda *_: None, "must return a scalar tensor, got None"),
    "a text": (lambda *_: "low", "must return a scalar tensor, got 'low'"),
    "a bool": (lambda *_: True, "must return a scalar tensor, got True"),
    "a tuple": (
        lambda outputs, _: (outputs.mean(), outputs.std(), outputs.mean()),
        "must return a scalar tensor, got a tuple of 3: Tensor, Tensor, Tensor",
    ),
    "a number of hits": (hits, r"must return a scalar tensor, got int64 \[\]"),
    "rows of its own": (Rows(), r"row_losses of Rows must return \[B\], .* \[1, 128\]"),
}
CUT_OFF = {
    "detached": lambda outputs, targets: functional.cross_entropy(
        outputs.detach(), targets
    ),
    "made anew": lambda outputs, targets: torch.tensor(outputs.std().item()),
    "accuracy": accuracy,
    "of its own weight": lambda *_: torch.ones((), requires_grad=True) * 2,
}
NOT_FINITE = {
    "nan": (lambda outputs, _: outputs.sum() * float("nan"), "got nan"),
    "inf": (lambda outputs, _: outputs.sum() * float("inf"), "got (inf|-inf|nan)"),
    "log of zero": (lambda outputs, _: (outputs * 0).sum().log(), "got -inf"),
    "nan gradient": (steep, "got 0 with gradients up to nan"),
}
UNCALLED = {
    "class": (nn.CrossEntropyLoss, "the class CrossEntropyLoss: pass CrossEntropyLos"),
    "own class": (Rows, r"the class Rows: pass Rows\(\)"),
    "name": ("cross_entropy", "a function of outputs and targets, got 'cross_entropy'"),
    "nothing": (None, "a function of outputs and targets, got None"),
    "number": (torch.zeros(()), r"a function of outputs and targets, got float32 \[\]"),
}
RAISING = {
    "more arguments": (
        weighted,
        TypeError,
        "missing 1 .* argument: 'weight'",
        EXAMPLES,
    ),
    "no arguments": (without_arguments, TypeError, "takes 0 positional", EXAMPLES),
    "its own": (raising, MishapError, "MishapError: not today", EXAMPLES),
    "floats": (
        nn.CrossEntropyLoss(),
        RuntimeError,
        r"float32 \[128\], but raised",
        ONE,
    ),
    "an output per label": (
        nn.BCEWithLogitsLoss(),
        RuntimeError,
        r"int64 \[128\] from 0 to 1, but raised RuntimeError",
        BINARY,
    ),
    "out of range": (
        nn.MultiMarginLoss(),
        RuntimeError,
        "raised RuntimeError",
        (
            INPUTS,
            LABELS + 3,
        ),
    ),
}
BROADCAST = {
    "torch's": (nn.MSELoss(), "UserWarning: Using a target size"),
    "as a function": (functional.l1_loss, "UserWarning: Using a target size"),
    "own": (squared, "squared must compare every output with its own target"),
    "own sum": (summed, "they are broadcast; give both one shape"),
    "in a partial": (partial(nn.MSELoss.forward, nn.MSELoss()), "Using a target size"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_a_loss_that_returns_something_else_is_refused(name: str) -> None:
    loss, text = RETURNED[name]
    assert isinstance(refusal(LossError, text, loss=loss), ConfigError)


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_loss_without_gradient_is_refused(name: str) -> None:
    error = refusal(
        LossError, "must be differentiable in the outputs", loss=CUT_OFF[name]
    )
    assert "got a value without gradient" in str(error)


@pytest.mark.parametrize("name", NOT_FINITE)
def test_a_loss_that_is_not_finite_is_refused(name: str) -> None:
    loss, text = NOT_FINITE[name]
    error = refusal(
        LossError, f"must be finite with a finite gradient, {text}", loss=loss
    )
    assert "for the untouched network on outputs float32 [128, 3]" in str(error)


@pytest.mark.parametrize("name", UNCALLED)
def test_what_cannot_be_called_is_refused_before_the_model_is_touched(
    name: str,
) -> None:
    loss, text = UNCALLED[name]
    model = given()["model"].train()
    assert refusal(LossError, f"the loss must be .*{text}", loss=loss, model=model)
    assert model.training


@pytest.mark.parametrize("name", RAISING)
def test_what_a_loss_raises_at_its_first_call_is_the_cause(name: str) -> None:
    loss, cause, text, train = RAISING[name]
    error = refusal(LossError, text, loss=loss, train=train, observe=BINARY)
    assert isinstance(error.__cause__, cause)
    assert "must make a scalar of outputs float32 [128, 3] and targets" in str(error)


@pytest.mark.parametrize("name", BROADCAST)
def test_outputs_and_targets_that_are_broadcast_are_refused(name: str) -> None:
    """Outputs [n, 1] against targets [n] were compared all with all, silently."""
    loss, text = BROADCAST[name]
    error = refusal(LossError, text, loss=loss, train=ONE, model=one_output())
    assert "outputs float32 [128, 1] and targets float32 [128]" in str(error)

"""Right losses are taken, tried once, and cannot change anything outside themselves."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from metricopt import LazySplit, LossError, Split
from tests.robustness.refused import (
    BINARY,
    EXAMPLES,
    INPUTS,
    LABELS,
    ONE,
    one_output,
    outcome,
    slopes,
    squared,
)

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

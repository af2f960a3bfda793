"""Labels of any whole type work; labels out of range are refused with their split."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from metricopt import DataError, LazySplit, Split
from metricopt.tasks.examples import as_split
from metricopt.tasks.row_losses import Loss, batched_loss
from tests.metricopt.drawn import draw, labels
from tests.robustness.refused import (
    INPUTS,
    LABELS,
    SPLITS,
    outcome,
    refusal,
    slopes,
    spoilt,
)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32"])
def test_labels_of_any_whole_type_give_what_int64_gives(kind: str) -> None:
    """Cross-entropy refused int32 labels with a traceback."""
    examples = (INPUTS, LABELS.to(getattr(torch, kind)))
    data = TensorDataset(*examples)
    for given in (examples, data, LazySplit(data)):
        split = as_split(given, name="train", device=LABELS.device)
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

"""Losses of many rows at once equal one call per row, whatever the loss."""

import pytest
import torch
from torch import nn

from metricopt.tasks.row_losses import batched_loss
from tests.metricopt.drawn import draw, labels


class LabelTwice(nn.CrossEntropyLoss):
    """Overrides what the loss means: it must not be taken for its parent."""

    def forward(self, outputs, targets):
        return 2 * super().forward(outputs, targets).mean()


def ignoring(targets):
    targets = targets.clone()
    targets[0, :3] = -100
    targets[1, 1] = -100
    return targets


OUTPUTS, TARGETS, BINARY = draw(4, 8, 3), labels(4, 8), labels(4, 8, classes=2)
LOSSES = {
    "cross-entropy": (nn.CrossEntropyLoss(), OUTPUTS, TARGETS),
    "smoothed": (nn.CrossEntropyLoss(label_smoothing=0.1), OUTPUTS, TARGETS),
    "ignored": (nn.CrossEntropyLoss(), OUTPUTS, ignoring(TARGETS)),
    "class-weights": (
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0])),
        OUTPUTS,
        TARGETS,
    ),
    "summed": (nn.CrossEntropyLoss(reduction="sum"), OUTPUTS, TARGETS),
    "probabilities": (nn.CrossEntropyLoss(), OUTPUTS, draw(4, 8, 3).softmax(2)),
    "pixels": (nn.CrossEntropyLoss(), draw(4, 8, 3, 2, 2), labels(4, 8, 2, 2)),
    "binary": (nn.BCEWithLogitsLoss(), OUTPUTS[..., :1], BINARY[..., None].float()),
    "multi-label": (nn.BCEWithLogitsLoss(), OUTPUTS, labels(4, 8, 3, classes=2) * 1.0),
    "positive-weight": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0])),
        OUTPUTS[..., :1],
        BINARY[..., None].float(),
    ),
    "positive-weights": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0, 1.0, 0.5])),
        OUTPUTS,
        labels(4, 8, 3, classes=2) * 1.0,
    ),
    "label-weights": (
        nn.BCEWithLogitsLoss(weight=torch.tensor([3.0, 1.0, 0.5])),
        OUTPUTS,
        labels(4, 8, 3, classes=2) * 1.0,
    ),
    "subclass": (LabelTwice(), OUTPUTS, TARGETS),
    "margin": (nn.MultiMarginLoss(), OUTPUTS, TARGETS),
    "function": (nn.functional.cross_entropy, OUTPUTS, TARGETS),
}


@pytest.mark.parametrize("name", LOSSES)
def test_batched_losses_equal_one_call_per_row(name):
    loss, outputs, targets = LOSSES[name]
    expected = [loss(row, label) for row, label in zip(outputs, targets, strict=True)]
    found = batched_loss(loss)(outputs, targets)
    assert found.shape == (4,)
    torch.testing.assert_close(found, torch.stack(expected))


def test_single_logits_may_have_integer_labels_without_a_class_axis():
    loss, logits = nn.BCEWithLogitsLoss(), OUTPUTS[..., :1]
    expected = batched_loss(loss)(logits, BINARY[..., None].float())
    torch.testing.assert_close(batched_loss(loss)(logits, BINARY), expected)


def test_the_loss_of_the_caller_is_not_changed():
    loss = nn.CrossEntropyLoss()
    batched_loss(loss)(OUTPUTS, TARGETS)
    assert loss.reduction == "mean"


def test_a_loss_may_bring_its_own_batched_form():
    class Constant:
        def __call__(self, outputs, targets):
            raise AssertionError("the batched form is to be used")

        def row_losses(self, outputs, targets):
            return outputs.mean((1, 2))

    found = batched_loss(Constant())(OUTPUTS, TARGETS)
    torch.testing.assert_close(found, OUTPUTS.mean((1, 2)))

"""Train targets that differ in form from those of observe, which decide the meaning."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from metricopt import DataError, LossError, NetworkTask, Split, finetune, make_metric
from metricopt.adapters.offsets_alone import OffsetsAlone
from metricopt.reading.meaning import Meaning
from metricopt.tasks.network_task import Drawing
from tests.metricopt.drawn import draw, seeded

INPUTS = draw(60, 6)
BINARY = (INPUTS[:, 0] > 0).long()
HARD, SOFT = BINARY.float(), BINARY * 0.9 + 0.05
SEVERAL = torch.stack([BINARY, 1 - BINARY, BINARY], 1).float()
TWO, ENTROPY = INPUTS[:, :2], nn.CrossEntropyLoss()
NOT_SEEN = "which the loss would not see as they are"


def seeing(outputs: Tensor, targets: Tensor) -> Tensor:
    raise ValueError(targets)


def flat(outputs: Tensor, targets: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(outputs[:, 0], targets.clamp(0, 1).float())


def call(train, observe, *, outputs=1, loss=seeing, metric="f1", **settings):
    torch.manual_seed(0)
    splits = {"train": (INPUTS, train), "observe": (INPUTS, observe)}
    model = nn.Linear(6, outputs)
    given = {"loss": loss, "metric": metric, "queries": 15} | splits | settings
    return finetune(model, progress=False, **given)


@pytest.mark.parametrize(
    ("train", "observe", "got"),
    [
        (SOFT, HARD, r"float32 \[60\], got float32 \[60\] from 0.05 to 0.95"),
        (
            SOFT[:, None],
            HARD[:, None],
            r"\[60, 1\], got .* \[60, 1\] from 0.05 to 0.95",
        ),
        (HARD, HARD[:, None], r"float32 \[60, 1\], got float32 \[60\] from 0 to 1"),
        (2 * BINARY, BINARY > 0, r"bool \[60\], got int64 \[60\] from 0 to 2"),
        (HARD / 0, HARD, r"got float32 \[60\] from nan to nan"),
    ],
)
def test_train_targets_that_the_loss_would_see_changed_are_refused(train, observe, got):
    """Soft labels became 0 where observe has whole ones."""
    with pytest.raises(DataError, match=rf"^the train targets .*{got}, {NOT_SEEN}$"):
        call(train, observe)


@pytest.mark.parametrize(
    ("train", "observe", "outputs"),
    [
        (SOFT, BINARY, 1),
        (HARD.double(), HARD, 1),
        (BINARY, HARD, 1),
        (HARD[:, None], HARD, 1),
        (HARD, SOFT, 1),
        (SEVERAL * 0.9 + 0.05, SEVERAL, 3),
        (SEVERAL / 2, BINARY, 3),
    ],
)
def test_other_train_targets_come_to_the_loss_as_they_are(train, observe, outputs):
    with pytest.raises(LossError) as caught:
        call(train, observe, outputs=outputs)
    (seen,) = caught.value.__cause__.args
    assert bool(torch.isin(seen, train).all())
    assert seen.shape[1:] == train.shape[1:]


@pytest.mark.parametrize(
    ("train", "loss", "some"),
    [
        (BINARY, ENTROPY, True),
        (BINARY.where(INPUTS[:, 1] > 0, -100), ENTROPY, False),
        (BINARY.where(INPUTS[:, 1] > 0, 9), nn.CrossEntropyLoss(ignore_index=9), False),
        (SEVERAL[:, :2], ENTROPY, False),
    ],
)
def test_only_the_loss_of_the_user_gets_labels_that_it_ignores(train, loss, some):
    """The portfolio ended in an error of torch about negative labels."""
    drawing = Drawing(meaning=Meaning("logits", "labels"))
    splits = {"train": Split(TWO, train), "observe": Split(TWO, BINARY)}
    metric = make_metric("f1")
    task = NetworkTask(OffsetsAlone(2), loss, metric, **splits, drawing=drawing)
    task.check()
    assert bool(task.portfolio) == some
    assert task.losses(torch.zeros(2, 2), seeded()).isfinite().all()


@pytest.mark.parametrize("sign", [1, -1])
def test_train_labels_of_no_class_are_named(sign):
    """They ended in an error of torch about the size of a tensor."""
    text = rf"^the train targets must be labels in \[0, 1\].*got {min(0, 2 * sign)} to"
    with pytest.raises(DataError, match=text):
        call(2 * sign * BINARY, BINARY, loss=flat)

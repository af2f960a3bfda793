"""As many tokens as classes: the loss says where the classes are, or the user does."""

from functools import partial

import pytest
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.nn.functional import cross_entropy

from metricopt import ConfigError, FinetuneOptions, finetune
from metricopt.reading.layout import layout_of
from metricopt.reading.meaning import meaning_of
from tests.metricopt.drawn import seeded

OUTPUTS = torch.randn(20, 3, 3, generator=seeded())
TARGETS = torch.randint(3, (20, 3), generator=seeded(1))
MACRO = partial(f1_score, average="macro")


def flattened(outputs, targets):
    return cross_entropy(outputs.flatten(0, 1), targets.flatten())


def in_order(outputs, targets):
    """A loss that weighs the places of a sequence."""
    each = cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
    return (each.view(targets.shape) * torch.tensor([1.0, 2.0, 4.0])).mean()


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.CrossEntropyLoss(), "channels"),
        (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 9.0])), "channels"),
        (cross_entropy, "channels"),
        (flattened, "tokens"),
        (lambda o, t: nn.CrossEntropyLoss()(o.transpose(1, 2), t), "tokens"),
        (None, "channels"),
    ],
)
def test_the_loss_settles_where_the_classes_are(loss, expected):
    assert layout_of(OUTPUTS, TARGETS, loss, None) == expected
    assert meaning_of(OUTPUTS, TARGETS, loss=loss).layout == expected
    # Images, too: as many rows and columns as classes.
    maps = torch.randn(4, 3, 3, 3, generator=seeded())
    labels = torch.randint(3, (4, 3, 3), generator=seeded())
    dense = {"tokens": lambda o, t: cross_entropy(o.reshape(-1, 3), t.flatten())}
    assert layout_of(maps, labels, dense.get(expected, cross_entropy), None) == expected


@pytest.mark.parametrize("loss", [in_order, lambda o, t: o.square().mean()])
def test_a_loss_that_does_not_tell_asks_the_user(loss):
    with pytest.raises(
        ConfigError, match=r"\[20, 3, 3\] .* the loss does not tell: sa"
    ):
        layout_of(OUTPUTS, TARGETS, loss, None)
    for said in ("channels", "tokens"):
        assert layout_of(OUTPUTS, TARGETS, loss, said) == said


def test_what_the_user_says_has_to_fit():
    for outputs, targets, said in (
        (torch.randn(20, 5, 3), TARGETS, "tokens"),
        (torch.randn(20, 3, 5), TARGETS, "channels"),
        (OUTPUTS, TARGETS, "rows"),
    ):
        with pytest.raises(ConfigError, match=f"layout='{said}' does not fit outputs"):
            layout_of(outputs, targets, None, said)
    with pytest.raises(ConfigError, match="layout must be one of 'rows', 'channels'"):
        FinetuneOptions(layout="last")
    assert layout_of(torch.randn(20, 4), TARGETS[:, 0], None, "tokens") == "rows"


@pytest.mark.parametrize("settings", [{}, {"layout": "tokens"}])
def test_as_many_tokens_as_classes_have_the_right_metric(settings):
    torch.manual_seed(0)
    inputs = torch.randn(60, 3, 8)
    targets = (inputs @ torch.randn(8, 3)).argmax(-1)
    model = nn.Linear(8, 3)
    found = finetune(
        model,
        train=(inputs, targets),
        observe=(inputs, targets),
        loss=flattened if not settings else in_order,
        metric=MACRO,
        queries=8,
        no_harm=False,
        progress=False,
        **settings,
    )
    assert found.meaning.layout == "tokens"
    predicted = model(inputs).argmax(-1)
    right = MACRO(targets.flatten(), predicted.flatten())
    assert found.metric_before == pytest.approx(right)

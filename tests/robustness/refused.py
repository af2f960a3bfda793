"""Calls of `finetune` that must be refused with one sentence, before any query."""

import pytest
import torch
from torch import Tensor, nn

from metricopt import (
    DynamicBias,
    FinetuneOptions,
    NetworkTask,
    Split,
    finetune,
    make_metric,
)
from metricopt.errors import MetricOptError
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss
from tests.metricopt import adapter_networks
from tests.metricopt.counted_metric import Counted
from tests.metricopt.drawn import draw, labels, seeded

INPUTS, LABELS = draw(60, 6), labels(60)
EXAMPLES = (INPUTS, LABELS)
IMAGES = (draw(20, 3, 8, 8), labels(20, classes=5))
ONE = (INPUTS, draw(60, seed=7))
"""For one output."""
BINARY = (INPUTS, labels(60, classes=2))
SPLITS = ("train", "observe")
OPTIONS = FinetuneOptions(
    "random-search", queries=5, steps=2, no_harm=False, progress=False
)


def given(**changes: object) -> dict[str, object]:
    """Return arguments of `finetune` that work, but for the changes."""
    return {
        "model": adapter_networks.mlp(),
        "train": EXAMPLES,
        "observe": EXAMPLES,
        "loss": nn.CrossEntropyLoss(),
        "metric": "mcr",
        "options": OPTIONS,
    } | changes


def refusal(kind: type[MetricOptError], text: str, **changes: object) -> MetricOptError:
    """Return the error of a call, which has to come before the first query.

    Args:
        kind: its exact class.
        text: pattern found in its one line.
        **changes: what is wrong.
    """
    metric = Counted()
    asked = {"metric": make_metric(metric, higher_is_better=True)} | changes
    with pytest.raises(kind, match=text) as caught:
        finetune(**given(**asked))
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert caught.value.partial is None
    assert not metric.values
    return caught.value


def outcome(**changes: object) -> tuple[Tensor, float]:
    """Return phi and the metric of a call that works."""
    found = finetune(**given(**changes))
    return found.phi, found.metric_proposed


def spoilt(inputs: Tensor, at: int, value: float) -> Tensor:
    """Return inputs with one number of one example replaced."""
    inputs = inputs.clone()
    inputs[at, 1] = value
    return inputs


def one_output() -> nn.Module:
    """Return a network with one output."""
    layers = nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)
    return adapter_networks.randomise(nn.Sequential(*layers)).eval()


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared error, of any shapes that torch broadcasts."""
    return (outputs - targets).square().mean()


def slopes(loss: Loss, train: Examples) -> tuple[Tensor, Tensor]:
    """Return losses [3] and their gradients [3, d] at some phi."""
    adapter = DynamicBias(adapter_networks.mlp(), size=5)
    metric = make_metric("mcr")
    task = NetworkTask(adapter, loss, metric, train=train, observe=Split(*EXAMPLES))
    phi = draw(3, 5).requires_grad_()
    losses = task.losses(phi, seeded())
    (gradient,) = torch.autograd.grad(losses.sum(), phi)
    return losses.detach(), gradient

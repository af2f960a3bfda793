"""Short calls of `finetune` on real data, with and without a checkpoint."""

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

from metricopt import Finetuned, Split, finetune
from tests.metricopt import adapter_networks

QUERIES = 12
FORGIVEN = 4
"""Queries that may fail."""


class Judge:
    """The accuracy, which may cost money: it counts how often it is asked.

    Attributes:
        asked: how often it was called.
        before: called with the number of the question before it is answered.
    """

    def __init__(self, before: Callable[[int], object] = bool) -> None:
        self.asked = 0
        self._hook = before

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        self.asked += 1
        self._hook(self.asked)
        return (outputs.argmax(1) == targets).double().mean().item()


class Raises:
    """Raises an error at one call."""

    def __init__(self, error: BaseException, at: int) -> None:
        self.error, self.at = error, at

    def __call__(self, number: int) -> None:
        if number == self.at:
            raise self.error


class Fails(Raises):
    """Raises an error from one call on."""

    def __call__(self, number: int) -> None:
        if number >= self.at:
            raise self.error


class Later:
    """Raises an error at its first call after a judge was asked a few times."""

    def __init__(self, error: BaseException, judge: Judge, after: int = 3) -> None:
        self.error, self.judge, self.after = error, judge, after

    def __call__(self) -> None:
        if self.judge.asked >= self.after:
            raise self.error


@cache
def tumours() -> tuple[Split, Split]:
    """Return train and observe splits of measured tumours, 30 numbers each."""
    measured, kinds = load_breast_cancer(return_X_y=True)
    inputs = torch.tensor(measured).float()
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    labels = torch.tensor(kinds)
    return Split(inputs[:200], labels[:200]), Split(inputs[200:320], labels[200:320])


def network(seed: int = 0) -> nn.Module:
    """Return a network for them that is not trained at all."""
    layers = nn.Linear(30, 6), nn.ReLU(), nn.Linear(6, 2)
    return adapter_networks.randomise(nn.Sequential(*layers), seed)


def call(**changes: object) -> Finetuned:
    """Return the result of a call with some arguments changed."""
    train, observe = tumours()
    given = {
        "model": network(),
        "train": train,
        "observe": observe,
        "loss": nn.CrossEntropyLoss(),
        "metric": Judge(),
        "higher_is_better": True,
        "method": "random-search",
        "queries": QUERIES,
        "steps": 3,
        "no_harm": False,
        "progress": False,
    }
    return finetune(**(given | changes))


class Forward(nn.Module):
    """A network that cannot be traced, and calls a hook."""

    def __init__(self, hook: Callable[[], object]) -> None:
        super().__init__()
        self.network, self.hook = network(), hook

    def forward(self, x: Tensor) -> Tensor:
        self.hook()
        return self.network(x if float(x.sum()) < 1e9 else -x)


class HookedLoss:
    """Cross-entropy that calls a hook."""

    def __init__(self, hook: Callable[[], object]) -> None:
        self.hook = hook

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self.hook()
        return nn.functional.cross_entropy(outputs, targets)


def told(found: Finetuned) -> dict[str, object]:
    """Return all that a result says, but for the seconds, as JSON holds it."""
    seconds = f" in {found.spent.seconds:.1f} s"
    return {
        "phi": found.phi.tolist(),
        "values": found.values.tolist(),
        "summary": found.summary().replace(seconds, "", 1),
        "queries": found.spent.queries,
        "steps": found.spent.gradient_steps,
        "notes": found.notes,
    }


@cache
def undisturbed(**changes: object) -> dict[str, object]:
    """Return what a call without checkpoint and disturbance finds."""
    return told(call(**changes))


def logged_call(checkpoint: Path, log: Path, result: Path) -> None:
    """Call once, slowly, with a line in a log before each evaluation."""

    def note(number: int) -> None:
        with log.open("ab", buffering=0) as file:
            file.write(b"asked\n")
        time.sleep(0.02)

    found = call(metric=Judge(note), queries=30, checkpoint=checkpoint)
    result.write_text(json.dumps(told(found)))

"""Ctrl-C returns the best so far, with a sentence that says so."""

import signal
from pathlib import Path

import pytest
import torch

from metricopt.call import FinetuneCall
from tests.robustness.checkpoint_calls import (
    QUERIES,
    Forward,
    HookedLoss,
    Judge,
    Later,
    call,
    told,
    undisturbed,
)


def press(number: int, at: int = 9) -> None:
    """Press Ctrl-C at one question."""
    if number == at:
        signal.raise_signal(signal.SIGINT)


def test_the_best_measured_is_returned() -> None:
    expected, metric = undisturbed(), Judge(press)
    found = call(metric=metric)
    assert metric.asked == 9
    assert found.spent.queries == 8
    assert found.values.tolist() == expected["values"][: len(found.values)]
    assert found.metric_after == max(found.values.tolist())
    assert found.metric_before == found.values[0]
    assert found.warnings == (
        f"interrupted after 8 of {QUERIES} queries; phi is the best one observed until "
        "then, and nothing shows that it is better on other data.",
    )
    assert f"Warning: {found.warnings[0]}" in found.summary()
    assert told(call()) == expected  # nothing is left behind


@pytest.mark.parametrize("method", ["cma-es", "auto"])
def test_wherever_it_comes(method: str) -> None:
    of_metric = call(metric=Judge(press), method=method)
    assert of_metric.spent.queries == 8
    judge = Judge()
    model = Forward(Later(KeyboardInterrupt(), judge))
    of_model = call(metric=judge, model=model, method=method)
    assert "interrupted after" in of_model.warnings[0]
    model.hook, inputs = bool, torch.zeros(3, 30)
    expected = model.network(inputs)
    assert of_model.apply() is model
    of_model.remove()
    assert torch.equal(model(inputs), expected)


def test_it_comes_in_the_loss() -> None:
    judge = Judge()
    loss = HookedLoss(Later(KeyboardInterrupt(), judge))
    found = call(metric=judge, loss=loss, method="loss-only-dense")
    assert "interrupted after" in found.warnings[0]
    assert found.spent.queries == judge.asked < QUERIES


def test_a_second_one_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(self: FinetuneCall) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(FinetuneCall, "best", again)
        with pytest.raises(KeyboardInterrupt):
            call(metric=Judge(press))
    assert call().spent.queries == QUERIES


def test_with_a_checkpoint_the_same_call_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    found = call(metric=Judge(press), checkpoint=path)
    assert f"; the same call goes on from {path}." in found.warnings[0]
    metric = Judge()
    complete = call(metric=metric, checkpoint=path)
    assert told(complete) == undisturbed()
    assert metric.asked == QUERIES - 8
    assert complete.spent.replayed == 8

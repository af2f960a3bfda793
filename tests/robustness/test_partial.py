"""Whatever ends a call, of whatever class, or Ctrl-C: the best so far comes out."""

import io
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from tqdm import tqdm

from metricopt import DataError, Finetuned, Metric, MetricError
from metricopt.call import FinetuneCall
from tests.robustness.checkpoint_calls import (
    FORGIVEN,
    QUERIES,
    Fails,
    Forward,
    HookedLoss,
    Judge,
    Later,
    Raises,
    call,
    told,
    undisturbed,
)

AT = 7
"""The question at which a metric fails."""


@dataclass(frozen=True)
class FrozenError(Exception):
    """Refuses every assignment."""

    code: int = 1


class SealedError(Exception):
    """Refuses assignments with an error of its own."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("sealed")


class SlottedError(Exception):
    """Has no room for attributes of its own."""

    __slots__ = ()


class SilentError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class OutsideError(BaseException):
    """No `Exception`."""


ERRORS = [
    FrozenError,
    SealedError,
    SlottedError,
    SilentError,
    OutsideError,
    MemoryError,
    RecursionError,
    StopIteration,
    GeneratorExit,
    SystemExit,
]


def failing_metric(error: BaseException) -> dict[str, Any]:
    return {"metric": Judge(Fails(error, AT))}


def failing_loss(error: BaseException) -> dict[str, Any]:
    judge = Judge()
    loss = HookedLoss(Later(error, judge))
    return {"metric": judge, "loss": loss, "method": "loss-only-dense"}


def failing_model(error: BaseException) -> dict[str, Any]:
    judge = Judge()
    model = Forward(Later(error, judge))
    return {"metric": judge, "model": model, "method": "cma-es"}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("where", [failing_metric, failing_loss, failing_model])
def test_the_error_comes_out_with_the_best(
    where: Callable[[BaseException], dict[str, Any]], kind: type[BaseException]
) -> None:
    error = kind()
    wrapped = where is failing_metric and isinstance(error, Exception)
    with pytest.raises(MetricError if wrapped else kind) as caught:
        call(**where(error))
    assert (caught.value.__cause__ if wrapped else caught.value) is error
    best = caught.value.partial
    assert isinstance(best, Finetuned)
    assert len(best.values) >= 1
    assert best.metric_after == max(best.values.tolist())
    if where is failing_metric:
        assert best.spent.queries == AT - 1 + (FORGIVEN if wrapped else 0)
    if wrapped and kind is SilentError:
        assert str(caught.value) == "metric 'Judge' raised SilentError"
    assert "best so far, in `partial`: Judge on" in caught.value.__notes__[-1]


def test_a_metric_in_a_thread_is_like_any_other() -> None:
    judge = Judge(Fails(OSError("line is dead"), AT))

    def threaded(outputs: Tensor, targets: Tensor) -> float:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(judge, outputs, targets).result()

    with pytest.raises(MetricError, match="raised OSError: line is dead") as caught:
        call(metric=threaded)
    assert caught.value.partial.spent.queries == AT - 1 + FORGIVEN


def test_a_metric_of_the_users_own_class_loses_no_answer() -> None:
    """A method may query many phi at once; the metric answers one after another."""

    class Own(Metric):
        name, higher_is_better = "own", True
        judge = Judge(Fails(OSError("no"), AT))

        def _value(self, outputs: Tensor, targets: Tensor) -> float:
            return self.judge(outputs, targets)

    with pytest.raises(MetricError, match="'own' raised OSError: no") as caught:
        call(metric=Own(), higher_is_better=None)
    best = caught.value.partial
    # One is in another order.
    assert best.spent.queries == len(best.values) + 1 == AT - 1 + FORGIVEN
    assert best.metric_after == max(best.values.tolist())


class Terminal(io.StringIO):
    """A terminal that breaks at a write."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.writes, self.at = 0, at

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes += 1
        if self.writes >= self.at:
            raise BrokenPipeError("the terminal is gone")
        return super().write(text)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 8, None])
def test_a_broken_terminal_ends_the_bar_alone(
    at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None if at is None else Terminal(at))
        found = call(progress=True)
    assert found.spent.queries == QUERIES
    assert found.values.tolist() == call().values.tolist()
    assert is_free(tqdm.get_lock())


def is_free(lock: object) -> bool:
    """Whether another thread can take a lock, as its bars have to."""
    taken = []

    def take() -> None:
        taken.append(
            lock.mp_lock.acquire(timeout=5) and lock.th_lock.acquire(timeout=5)
        )
        if taken == [True]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken == [True]


class Hostile:
    """Has no attribute, and says so by an error of another class."""

    def __getattr__(self, name: str) -> object:
        raise LookupError(name)


def raises(error: BaseException) -> Later:
    """Raise an error at once."""
    return Later(error, Judge(), after=0)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (MetricError, {"metric": Judge(Raises(KeyError(), 1))}),
        (Exception, {"metric": Hostile()}),
        (Exception, {"train": Hostile()}),
        (DataError, {"model": Forward(raises(KeyError()))}),
        (KeyboardInterrupt, {"metric": Judge(Raises(KeyboardInterrupt(), 1))}),
        (KeyboardInterrupt, {"model": Forward(raises(KeyboardInterrupt()))}),
        (KeyboardInterrupt, {"loss": HookedLoss(raises(KeyboardInterrupt()))}),
    ],
)
def test_without_a_query_there_is_nothing_to_carry(
    kind: type[BaseException], changes: dict[str, Any]
) -> None:
    with pytest.raises(kind) as caught:
        call(**changes)
    assert caught.value.partial is None


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

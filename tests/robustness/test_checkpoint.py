"""A call with a checkpoint goes on where it was, and asks nothing twice."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn

from metricopt import ConfigError, MetricError, Split
from metricopt.process.watch import Watch
from tests.metricopt.adapter_networks import randomise
from tests.robustness.checkpoint_calls import (
    FORGIVEN,
    QUERIES,
    Fails,
    Judge,
    call,
    network,
    told,
    tumours,
    undisturbed,
)

Config = dict[str, float] | list[float] | None


class Weighed:
    """A metric with settings that its constructor does not name."""

    def __init__(self, beta: float, config: Config = None) -> None:
        self._weight, self.config, self.asked = beta, config, 0
        self.seen: list[int] = []

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        self.asked += 1
        self.seen.append(self.asked)
        hits = (outputs.argmax(1) == targets).double()
        return hits.mean().item() ** self._weight


def paid(outputs: Tensor, targets: Tensor, *, key: str) -> float:
    return (outputs.argmax(1) == targets).double().mean().item()


@pytest.mark.parametrize("method", ["random-search", "cma-es"])
@pytest.mark.parametrize(
    ("at", "asked"),
    [
        (1, 1),  # the untouched network
        (2, 2 + 2 + FORGIVEN),  # two that check the direction do not count
        (4, 4 + 1 + FORGIVEN),
        (7, 7 + FORGIVEN),
    ],
)
def test_it_goes_on_after_an_error(
    queries_file: Path, method: str, at: int, asked: int
) -> None:
    failing, metric = Judge(Fails(OSError("out of money"), at)), Judge()
    with pytest.raises(MetricError, match="out of money"):
        call(metric=failing, method=method, checkpoint=queries_file)
    found = call(metric=metric, method=method, checkpoint=queries_file)
    assert told(found) == undisturbed(method=method)
    assert failing.asked == asked
    assert metric.asked == found.spent.queries - (at - 1)
    assert found.spent.replayed == at - 1


def test_a_finished_call_asks_nothing(
    queries_file: Path, finished_call: tuple[bytes, dict]
) -> None:
    queries_file.write_bytes(finished_call[0])
    metric = Judge()
    found = call(metric=metric, checkpoint=str(queries_file))
    assert metric.asked == 0
    assert found.spent.replayed == found.spent.queries == QUERIES
    assert told(found) == finished_call[1]
    assert queries_file.read_bytes() == finished_call[0]


def test_every_answer_is_on_disk_before_the_next_question(queries_file: Path) -> None:
    lines = []
    metric = Judge(lambda _: lines.append(queries_file.read_bytes().count(b"\n")))
    call(metric=metric, checkpoint=queries_file)
    assert lines == [0, *range(2, QUERIES + 1)]  # with the heading


def shifted(split: Split) -> Split:
    inputs = split.inputs.clone()
    inputs[7, 3] += 1e-3
    return Split(inputs, split.targets)


TRAIN, OBSERVE = tumours()
OTHERS: dict[str, tuple[str, dict[str, object]]] = {
    "queries": ("its queries was 12, this call has 13", {"queries": 13}),
    "seed": ("its seed was 0, this call has 1", {"seed": 1}),
    "method": ("its method was random-search, this", {"method": "cma-es"}),
    "weights": ("its network was Sequential with", {"model": network(1)}),
    "loss": ("its loss was CrossEntropyLoss", {"loss": nn.MultiMarginLoss()}),
    "setting of the loss": (
        "its loss was CrossEntropyLoss",
        {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)},
    ),
    "train": ("its train split was 200 examples", {"train": shifted(TRAIN)}),
    "observe": ("its observe split was 120 examples", {"observe": shifted(OBSERVE)}),
    "labels": (
        "its observe split was 120 examples",
        {"observe": Split(OBSERVE.inputs, OBSERVE.targets.flip(0))},
    ),
    "metric": (
        "its metric was Judge, higher",
        {"metric": lambda outputs, targets: 0.5},
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_call_is_refused(
    queries_file: Path, finished_call: tuple[bytes, dict], other: str
) -> None:
    queries_file.write_bytes(finished_call[0])
    difference, changes = OTHERS[other]
    metric = Judge()
    with pytest.raises(ConfigError, match="is that of another run: ") as caught:
        call(**({"metric": metric, "checkpoint": queries_file} | changes))
    assert difference in str(caught.value)
    assert "make the same call again, or give another file" in str(caught.value)
    assert metric.asked == 0
    assert queries_file.read_bytes() == finished_call[0]


def test_a_call_that_does_not_repeat_itself_is_stopped(queries_file: Path) -> None:
    def drifting(seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            return (1 + seed) * outputs.square().mean() + outputs[:, seed].mean()

        return loss

    dense = {"method": "loss-only-dense", "checkpoint": queries_file}
    failing = Judge(Fails(SystemExit(), 7))
    with pytest.raises(SystemExit):
        call(metric=failing, loss=drifting(0), **dense)
    before, metric = queries_file.read_bytes(), Judge()
    with pytest.raises(ConfigError, match="asks about other outputs than the one rec"):
        call(metric=metric, loss=drifting(1), **dense)
    assert metric.asked == 0
    assert queries_file.read_bytes() == before


def test_a_second_call_at_the_same_time_is_refused(queries_file: Path) -> None:
    said = []

    def second(number: int) -> None:
        if number in (1, 2, QUERIES):
            with pytest.raises(ConfigError) as caught:
                call(checkpoint=queries_file)
            said.append(str(caught.value))

    call(metric=Judge(second), checkpoint=queries_file)
    assert len(said) == 3
    assert "in use by another call of finetune: wait for its end" in said[0]
    assert call(checkpoint=queries_file).spent.replayed == QUERIES  # free again


def test_a_failure_that_a_call_survives_is_an_answer(queries_file: Path) -> None:
    """A metric of numbers may be undefined at perfect predictions."""

    def undefined(number: int) -> None:
        if number == 3:
            raise ZeroDivisionError

    class Spread(Judge):
        def __call__(self, outputs: Tensor, targets: Tensor) -> float:
            super().__call__(outputs[:, None], targets)
            return 1 / (1 + (outputs - targets).square().mean().item())

    numbers = [Split(each.inputs, each.inputs[:, 0]) for each in tumours()]
    changes = {
        "model": randomise(nn.Sequential(network(), nn.Linear(2, 1), nn.Flatten(0))),
        "train": numbers[0],
        "observe": numbers[1],
        "loss": nn.MSELoss(),
        "checkpoint": queries_file,
    }
    once = call(metric=Spread(undefined), **changes)
    metric = Spread()
    again = call(metric=metric, **changes)
    assert metric.asked == 0
    assert told(again) == told(once)
    assert b"ZeroDivisionError" in queries_file.read_bytes()


SETTINGS: dict[str, tuple[str, object, object]] = {
    "number": ("Weighed", Weighed(1.0), Weighed(2.0)),
    "dict": ("Weighed", Weighed(1.0, {"beta": 2.0}), Weighed(1.0, {"beta": 3.0})),
    "list": ("Weighed", Weighed(1.0, [2.0, 1.0]), Weighed(1.0, [1.0, 2.0])),
    "argument": ("paid", *(partial(paid, key=f"secret-{each}") for each in "12")),
    "average": (
        "f1_score",
        *(partial(f1_score, average=each) for each in ("macro", "micro")),
    ),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_of_a_metric_are_told_apart_but_not_written(
    queries_file: Path, kind: str
) -> None:
    name, one, another = SETTINGS[kind]
    found = call(metric=one, checkpoint=queries_file)
    assert b"secret" not in queries_file.read_bytes()
    with pytest.raises(ConfigError, match=f"its metric was {name}, .* this call has"):
        call(metric=another, checkpoint=queries_file)
    again = call(metric=one, checkpoint=queries_file)
    assert told(again) == told(found) and again.spent.replayed == QUERIES


@pytest.mark.parametrize("method", ["random-search", "cma-es", "metricopt-outputs"])
def test_answers_serve_a_call_that_declares_another_range(
    queries_file: Path, method: str
) -> None:
    call(method=method, checkpoint=queries_file)
    before = queries_file.read_bytes()
    metric = Judge()
    found = call(metric=metric, method=method, checkpoint=queries_file, high=4.0)
    assert found.spent.replayed > 0
    # Another scale may lead a search to other questions; no answer is lost then.
    assert metric.asked == found.spent.queries - found.spent.replayed
    assert queries_file.read_bytes().startswith(before)
    again = Judge()
    third = call(metric=again, method=method, checkpoint=queries_file, high=4.0)
    assert again.asked == 0
    assert told(third) | {"summary": ""} == told(found) | {"summary": ""}


@pytest.mark.parametrize("method", ["random-search", "metricopt-outputs"])
def test_values_are_searched_on_their_own_scale(method: str) -> None:
    class Money(Judge):
        def __call__(self, outputs: Tensor, targets: Tensor) -> float:
            return 1_000 * super().__call__(outputs, targets)

    found, plain = call(metric=Money(), method=method), call(method=method)
    torch.testing.assert_close(found.phi, plain.phi)
    torch.testing.assert_close(found.values, 1_000 * plain.values)


@pytest.mark.parametrize("stop", ["callback", "timeout"])
def test_a_search_that_was_stopped_goes_on_in_the_next_call(
    queries_file: Path, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = {"method": "metricopt-outputs", "queries": 20, "checkpoint": queries_file}
    ends: dict[str, object] = {"callback": lambda query, *_: query == 7}
    # The first call ends at another place, before the search is over.
    with pytest.raises(MetricError, match="out of money"):
        call(metric=Judge(Fails(OSError("out of money"), 4)), **search)
    if stop == "timeout":
        ends = {"timeout": 3600.0}
        late = property(lambda watch: watch.queries >= 7 and setattr_(watch))
        monkeypatch.setattr(Watch, "is_over", late)
    stopped = call(**search, **ends)
    assert stopped.spent.queries >= 7
    assert queries_file.read_bytes().count(b'"ended_early": true') > 3
    monkeypatch.undo()
    metric = Judge()
    found = call(metric=metric, **search)
    whole = undisturbed(method="metricopt-outputs", queries=20)
    assert found.phi.tolist() == whole["phi"]
    assert metric.asked == found.spent.queries - found.spent.replayed > 0
    assert found.spent.replayed >= 7


def setattr_(watch: Watch) -> bool:
    watch.reason = "timeout=3600"
    return True


@pytest.mark.parametrize("free", [{"timeout": 3600.0}, {"callback": lambda *_: None}])
def test_a_call_that_nothing_stopped_has_to_repeat_itself(
    queries_file: Path, free: dict[str, object]
) -> None:
    def drifting(outputs: Tensor, targets: Tensor) -> Tensor:
        scale = int.from_bytes(os.urandom(2)) / 1e3
        return scale * outputs.square().mean() + outputs[:, 0].mean()

    given = {"loss": drifting, "method": "loss-only", "checkpoint": queries_file} | free
    call(**given)
    with pytest.raises(ConfigError, match="does not repeat itself"):
        call(**given)

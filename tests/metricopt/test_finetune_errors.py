"""Whatever ends `finetune` leaves with the best that was found until then."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from metricopt import (
    METHODS,
    ConfigError,
    DataError,
    Finetuned,
    LazySplit,
    MetricError,
)
from metricopt.errors import BudgetExceededError, DivergedError, Partial
from metricopt.reading.callables import make_metric
from tests.metricopt.counted_metric import Counted
from tests.metricopt.improving import OBSERVE, QUICK, TRAIN, TRIED, Proposes, improve


class MishapError(Exception):
    """What only the user's own code raises."""


class Fails:
    """Calls a function, and raises at one of the calls."""

    def __init__(self, error: BaseException, at: int, function: Callable) -> None:
        self.error, self.at, self.function = error, at, function
        self.calls = 0

    def __call__(self, *given: object) -> object:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.function(*given)


def right(outputs: Tensor, targets: Tensor) -> float:
    return (outputs.argmax(1) == targets).double().mean().item()


METRIC = make_metric(right, higher_is_better=True)


class Untraceable(nn.Module):
    """A network that cannot be cut: all of it runs at every query."""

    def __init__(self, network: nn.Module, forward: Callable) -> None:
        super().__init__()
        self.network, self.through = network, forward

    def forward(self, x: Tensor) -> Tensor:
        self.through()
        return self.network(x if float(x.sum()) < 1e9 else -x)


class Pictures(Dataset):
    """Images of digits, read one by one."""

    def __init__(self, split: tuple[Tensor, Tensor], read: Callable) -> None:
        self.split, self.read = split, read

    def __len__(self) -> int:
        return len(self.split[0])

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        self.read()
        return self.split[0][place], self.split[1][place]


def nothing() -> None:
    """Does nothing."""


def interrupted_metric(model, error):
    metric = Fails(error, TRIED + 6, right)
    return {"metric": make_metric(metric, higher_is_better=True)}


def failing_loss(model, error):
    return {"loss": Fails(error, 10, nn.functional.cross_entropy)}


def failing_model(model, error):
    return {"model": Untraceable(model, Fails(error, 30, nothing))}


def failing_data(model, error):
    read = Fails(error, 8 * len(OBSERVE[0]), nothing)
    observe = LazySplit(Pictures(OBSERVE, read), targets=OBSERVE[1])
    return {"model": Untraceable(model, nothing), "observe": observe}


@pytest.mark.parametrize("error", [MishapError("mine"), SystemExit(3)])
@pytest.mark.parametrize(
    "break_", [interrupted_metric, failing_loss, failing_model, failing_data]
)
def test_whatever_is_raised_carries_the_best(model, break_, error):
    given = {"model": model, "metric": METRIC} | break_(model, type(error)(*error.args))
    dense = METHODS.get("loss-only-dense")(rate=0.05)
    options = replace(QUICK, method=dense, queries=60, steps=10)
    expected = type(error)
    if break_ is interrupted_metric and isinstance(error, MishapError):
        expected = MetricError  # which names it
    with pytest.raises(expected) as caught:
        improve(options=options, **given)
    best = caught.value.partial
    assert isinstance(best, Finetuned)
    assert best.metric_after >= best.metric_before
    assert best.spent.queries >= 1 + TRIED
    assert "best so far, in `partial`: " in caught.value.__notes__[-1]
    network = best.apply()
    assert right(network(OBSERVE[0]), OBSERVE[1]) == pytest.approx(best.metric_after)


def test_what_offers_partial_is_said_by_the_errors(model):
    found: Partial = improve(model)
    offered = [name for name in vars(Partial) if not name.startswith("_")]
    assert {"phi", "metric_after", "summary", "apply", "save"} <= set(offered)
    assert all(hasattr(found, name) for name in offered)


def test_an_interrupted_search_keeps_the_best_it_measured(model):
    metric = Fails(KeyboardInterrupt(), TRIED + 9, right)
    seen: list[float] = []

    def noted(outputs: Tensor, targets: Tensor) -> float:
        seen.append(metric(outputs, targets))
        return seen[-1]

    found = improve(model, metric=make_metric(noted, higher_is_better=True))
    best = max(seen[0], *seen[TRIED + 1 :])
    assert found.metric_after == pytest.approx(best)
    assert found.spent.queries == TRIED + 8
    assert "interrupted after" in found.warnings[0]


def test_before_the_first_query_there_is_nothing_to_carry(model):
    pictures = Pictures(OBSERVE, Fails(MishapError("disk"), 5, nothing))
    for observe in (DataLoader(pictures, 2), pictures):
        pictures.read.calls = 0
        with pytest.raises(MishapError, match="disk") as caught:
            improve(model, observe=observe)
        assert caught.value.partial is None
        assert not hasattr(caught.value, "__notes__")
    with pytest.raises(KeyboardInterrupt) as interrupted:
        improve(Untraceable(model, Fails(KeyboardInterrupt(), 1, nothing)))
    assert interrupted.value.partial is None


def test_an_exception_that_takes_no_attribute_is_raised_all_the_same(model):
    @dataclass(frozen=True)
    class SealedError(Exception):
        code: int

    with pytest.raises(AttributeError):
        SealedError(7).partial = 1
    loss = Fails(SealedError(7), 2, nn.functional.cross_entropy)
    options = replace(QUICK, method="loss-only")
    with pytest.raises(SealedError) as caught:
        improve(model, options, loss=loss)
    assert caught.value.code == 7


def test_an_error_of_the_metric_keeps_the_best_phi(model):
    metric = Counted(fails_at=TRIED + 9)
    with pytest.raises(MetricError, match="raised OSError: no judge today") as caught:
        improve(model, metric=make_metric(metric, higher_is_better=True))
    partial_result = caught.value.partial
    assert partial_result.spent.queries == len(metric.values) == TRIED + 8
    assert partial_result.metric_before == pytest.approx(metric.values[0])
    best = max(metric.values[TRIED + 1 :])
    assert partial_result.metric_after == pytest.approx(max(best, metric.values[0]))
    assert "best so far, in `partial`: Counted on the" in caught.value.__notes__[-1]
    partial_result.apply()
    accuracy = (model(OBSERVE[0]).argmax(1) == OBSERVE[1]).double().mean().item()
    assert accuracy == pytest.approx(partial_result.metric_after)


def test_a_diverging_loss_keeps_the_untouched_network(model):
    calls: list[int] = []

    def diverging(outputs: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)  # the first is a trial
        return outputs.sum() * (1.0 if len(calls) == 1 else float("inf"))

    options = replace(QUICK, method="loss-only")
    message = "the loss diverges at every rate"
    with pytest.raises(DivergedError, match=message) as caught:
        improve(model, options, loss=diverging)
    assert not caught.value.partial.phi.any()


def test_a_greedy_method_is_stopped(model):
    options = replace(QUICK, method=Proposes(0.1, queries=11), queries=13)
    message = "1 more metric queries after 12 exceed the limit of 12"
    with pytest.raises(BudgetExceededError, match=message) as caught:
        improve(model, options)
    assert caught.value.partial.spent.queries == 12
    assert improve(model, replace(options, queries=14)).spent.queries == 14


def test_bad_data_and_metrics_are_refused(model):
    with pytest.raises(DataError, match="the train split is empty"):
        improve(model, train=(TRAIN[0][:0], TRAIN[1][:0]))
    one_class = OBSERVE[1] == 3
    with pytest.raises(DataError, match="'f-macro' needs targets of two classes"):
        improve(model, observe=[part[one_class] for part in OBSERVE], metric="f-macro")
    with pytest.raises(ConfigError, match="does not say which direction is better"):
        improve(model, metric=Counted())


def test_a_wrong_direction_is_found_out_within_the_queries(model):
    metric = Counted()
    options = replace(QUICK, higher_is_better=False)
    with pytest.raises(MetricError, match="but perfect predictions score 1") as caught:
        improve(model, options, metric=metric)
    assert caught.value.partial.spent.queries == len(metric.values) == 2 + TRIED
    assert not caught.value.partial.phi.any()
    few = replace(options, queries=4)
    message = "queries must be at least 5, as 2 of them check the declared direction"
    with pytest.raises(ConfigError, match=message):
        improve(model, few, metric=Counted())
    known = replace(QUICK, method="untouched", queries=3)
    assert improve(model, known).spent.queries == 3

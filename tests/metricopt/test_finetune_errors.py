"""Whatever ends `finetune` leaves with the best that was found until then."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from metricopt import (
    METHODS,
    ConfigError,
    DataError,
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
    """Raises at one of its calls."""

    def __init__(self, error: BaseException, at: int) -> None:
        self.error, self.at, self.calls = error, at, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise self.error


def right(outputs: Tensor, targets: Tensor) -> float:
    return (outputs.argmax(1) == targets).double().mean().item()


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


def test_an_error_of_the_data_set_carries_the_best(model):
    read = Fails(MishapError("mine"), 8 * len(OBSERVE[0]))
    observe = LazySplit(Pictures(OBSERVE, read), targets=OBSERVE[1])
    dense = METHODS.get("loss-only-dense")(rate=0.05)
    options = replace(QUICK, method=dense, queries=60, steps=10)
    metric = make_metric(right, higher_is_better=True)
    with pytest.raises(MishapError) as caught:
        improve(Untraceable(model, bool), options, observe=observe, metric=metric)
    best = caught.value.partial
    assert best.metric_after >= best.metric_before
    assert best.spent.queries >= 1 + TRIED
    network = best.apply()
    assert right(network(OBSERVE[0]), OBSERVE[1]) == pytest.approx(best.metric_after)


def test_what_offers_partial_is_said_by_the_errors(model):
    found: Partial = improve(model)
    offered = [name for name in vars(Partial) if not name.startswith("_")]
    assert {"phi", "metric_after", "summary", "apply", "save"} <= set(offered)
    assert all(hasattr(found, name) for name in offered)


def test_before_the_first_query_there_is_nothing_to_carry(model):
    pictures = Pictures(OBSERVE, Fails(MishapError("disk"), 5))
    for observe in (DataLoader(pictures, 2), pictures):
        pictures.read.calls = 0
        with pytest.raises(MishapError, match="disk") as caught:
            improve(model, observe=observe)
        assert caught.value.partial is None
        assert not hasattr(caught.value, "__notes__")
    with pytest.raises(KeyboardInterrupt) as interrupted:
        improve(Untraceable(model, Fails(KeyboardInterrupt(), 1)))
    assert interrupted.value.partial is None


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

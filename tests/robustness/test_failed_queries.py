"""A query that fails is kept, said and stayed away from; it does not end the call."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.metrics import f1_score, precision_score
from torch import Tensor

from metricopt import ConfigError, MetricError, Tuned, at_least, tune
from metricopt.errors import RangeError
from metricopt.metrics.base import Metric
from metricopt.tasks.failed_queries import ForgivingMetric
from tests.robustness.checkpoint_calls import (
    FORGIVEN,
    QUERIES,
    Fails,
    Judge,
    Raises,
    call,
    told,
    tumours,
)

OUTPUTS, TARGETS = torch.zeros(3, 2), torch.tensor([0, 1, 1])


def answering(*answers: float | Exception, higher: bool = True) -> Metric:
    """Return a metric in [0, 10] that gives these answers one after another."""
    rest = iter(answers)

    class Answering(Metric):
        name, higher_is_better, high = "answering", higher, 10.0

        def _value(self, outputs: Tensor, targets: Tensor) -> float:
            answer = next(rest)
            if isinstance(answer, Exception):
                raise answer
            return answer

    return Answering()


@pytest.mark.parametrize("failure", [math.nan, math.inf, ValueError("x")])
@pytest.mark.parametrize(("higher", "worst"), [(True, 3.0), (False, 8.0)])
def test_a_failure_counts_as_the_worst_value(failure, higher, worst) -> None:
    metric = ForgivingMetric(answering(5.0, 3.0, 8.0, failure, higher=higher), 1)
    found = [metric.value(OUTPUTS, TARGETS) for _ in range(4)]
    assert found == [5.0, 3.0, 8.0, worst]
    assert len(metric.failures) == 1
    assert "metric 'answering' r" in metric.failures[0]  # returned, or raised


@pytest.mark.parametrize(
    ("first", "higher", "worst"),
    [(5.0, True, 4.9), (5.0, False, 5.1), (0.0, True, 0.0), (10.0, False, 10.0)],
)
def test_a_failure_is_a_little_worse_than_the_only_value(first, higher, worst) -> None:
    metric = ForgivingMetric(answering(first, math.nan, higher=higher), 1)
    metric.value(OUTPUTS, TARGETS)
    assert metric.value(OUTPUTS, TARGETS) == pytest.approx(worst)


def test_the_first_failure_and_one_too_many_are_errors() -> None:
    with pytest.raises(MetricError, match="returned nan"):
        ForgivingMetric(answering(math.nan), 5).value(OUTPUTS, TARGETS)
    metric = ForgivingMetric(answering(5.0, math.nan, math.nan, math.nan), 2)
    for _ in range(3):
        metric.value(OUTPUTS, TARGETS)
    with pytest.raises(MetricError, match="returned nan"):
        metric.value(OUTPUTS, TARGETS)


def test_a_broken_promise_is_not_forgiven(queries_file: Path) -> None:
    metric = ForgivingMetric(answering(5.0, 11.0, 3.0), 3, 2)
    metric.value(OUTPUTS, TARGETS)
    with pytest.raises(RangeError, match="returned 11, outside its range"):
        metric.value(OUTPUTS, TARGETS)

    class Generous(Judge):
        def __call__(self, outputs: Tensor, targets: Tensor) -> float:
            value = super().__call__(outputs, targets)
            return 1.5 if self.asked == 7 else value

    promised = {"high": 1, "retries": 2, "checkpoint": queries_file}
    judge = Generous()
    with pytest.raises(RangeError, match=r"returned 1\.5, outside its range"):
        call(metric=judge, **promised)
    assert judge.asked == 7
    # The answer was not kept as a failure: it is asked again.
    found = call(metric=Generous(), **promised)
    plain = call(high=1)
    assert torch.equal(found.phi, plain.phi)
    assert torch.equal(found.values, plain.values)


def test_the_check_of_the_direction_is_asked_again() -> None:
    judge = Judge(Raises(TimeoutError("no answer"), 3))
    assert told(call(metric=judge, retries=1)) == told(call())


def test_rows_of_one_question_fail_by_themselves() -> None:
    metric = ForgivingMetric(answering(5.0, 2.0, math.nan, 7.0), 1)
    found = metric.values(OUTPUTS.expand(4, 3, 2), TARGETS)
    assert found.tolist() == [5.0, 2.0, 2.0, 7.0]


def test_a_query_is_asked_again_as_often_as_wished() -> None:
    answers = (OSError("busy"), math.nan, 5.0)
    assert ForgivingMetric(answering(*answers), 0, 2).value(OUTPUTS, TARGETS) == 5.0
    with pytest.raises(MetricError, match="returned nan"):
        ForgivingMetric(answering(*answers), 0, 1).value(OUTPUTS, TARGETS)


@pytest.mark.parametrize("method", ["random-search", "cma-es", "metricopt-outputs"])
def test_a_call_goes_on_and_says_what_failed(method: str, queries_file: Path) -> None:
    judge = Judge(Raises(TimeoutError("no answer"), 5))
    found = call(metric=judge, method=method, checkpoint=queries_file)
    assert judge.asked == found.spent.queries > 5
    (said,) = (each for each in found.warnings if "failed" in each)
    assert said == (
        f"1 of {found.spent.queries} queries failed, and count as the worst value that "
        "was seen; the first: metric 'Judge' raised TimeoutError: no answer."
    )
    again = Judge()
    replayed = call(metric=again, method=method, checkpoint=queries_file)
    assert told(replayed) == told(found)
    assert again.asked == 0


def test_a_retried_query_leaves_no_trace(queries_file: Path) -> None:
    judge = Judge(Raises(TimeoutError("no answer"), 5))
    found = call(metric=judge, retries=1, checkpoint=queries_file)
    assert told(found) == told(call())
    assert judge.asked == QUERIES + 1
    again = Judge()
    assert told(call(metric=again, retries=1, checkpoint=queries_file)) == told(found)
    assert again.asked == 0
    with pytest.raises(ConfigError, match="retries must be at least 0, got -1"):
        call(retries=-1)


def skewed() -> tuple[Tensor, Tensor]:
    """Return logits and labels of three classes, of which two are too rarely named."""
    generator = torch.Generator().manual_seed(0)
    shares, shift = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([1.5, 0.0, -1.5])
    labels = torch.multinomial(shares, 500, True, generator=generator)
    noise = torch.randn(500, 3, generator=generator)
    return noise + 1.5 * torch.eye(3)[labels] + shift, labels


def test_a_confirming_query_that_fails_is_no_observation(queries_file: Path) -> None:
    logits, labels = skewed()

    def called(fails: int, **settings: Any) -> tuple[Tuned, int]:
        asked = [0]

        def macro(outputs: Tensor, targets: Tensor) -> float:
            asked[0] += 1
            if asked[0] == fails:
                raise ConnectionError("away")
            return f1_score(targets, outputs.argmax(1), average="macro")

        known = {"higher_is_better": True, "queries": 15, "progress": False}
        return tune(logits, labels, macro, **known, **settings), asked[0]

    usual, queries = called(0)
    assert usual.metric_after > usual.metric_before + 0.1
    failed, _ = called(queries - 1, checkpoint=queries_file)
    assert failed.metric_after == failed.metric_before
    assert re.search(
        r"confirm it failed \(retries=1 asks again\): metric 'macro' raised .*: away\. "
        "The untouched network is kept",
        failed.evidence.reason,
    )
    # What was paid for is not lost.
    again, asked = called(0, checkpoint=queries_file, retries=1)
    assert (again.metric_after, asked) == (usual.metric_after, 2)


def test_a_bound_that_fails_at_the_confirming_query_is_not_met_by_it() -> None:
    logits, labels = skewed()
    asked = {"macro": 0, "accuracy": 0}

    def counted(name: str, fails: int) -> None:
        asked[name] += 1
        if asked[name] == fails:
            raise ConnectionError(name)

    def macro(outputs: Tensor, targets: Tensor) -> float:
        counted("macro", 6)
        return f1_score(targets, outputs.argmax(1), average="macro")

    def accuracy(outputs: Tensor, targets: Tensor) -> float:
        counted("accuracy", 12)
        return (outputs.argmax(1) == targets).double().mean().item()

    known = {"higher_is_better": True, "queries": 15, "progress": False}
    bounds = [at_least(accuracy, 0.55)]
    found = tune(logits, labels, macro, constraints=bounds, **known)
    assert "confirm it failed (retries=1 asks again)" in found.evidence.reason
    assert found.metric_after == found.metric_before
    assert any("2 of 15 queries failed" in said for said in found.warnings)


def test_a_third_of_failures_ends_a_call() -> None:
    judge = Judge(Fails(TimeoutError("no answer"), 5))  # after all checks
    with pytest.raises(MetricError, match="no answer") as caught:
        call(metric=judge)
    assert judge.asked == 4 + FORGIVEN + 1
    assert caught.value.partial.spent.queries == 4 + FORGIVEN


def test_queries_of_parts_that_fail_were_made_too() -> None:
    asked: list[int] = []
    whole = len(tumours()[1])

    def of_the_whole(outputs: Tensor, targets: Tensor) -> float:
        asked.append(len(outputs))
        if len(outputs) < whole:
            raise ValueError("needs the whole split")
        waves = torch.sin(20 * outputs.softmax(1)[:, 0] + 7 * outputs[:, 1])
        right = outputs.argmax(1) == targets
        return (right.double() + waves).mean().item()

    checks = {"no_harm": True, "check_direction": False}
    found = call(metric=of_the_whole, queries=24, method="auto", **checks)
    assert min(asked) < whole
    assert found.spent.queries == len(asked)


def test_a_metric_that_is_undefined_where_nothing_is_positive() -> None:
    """The call used to end at the first one."""
    holes: list[int] = []

    def precision(outputs: Tensor, targets: Tensor) -> float:
        decided = outputs.argmax(1)
        if (decided == 1).sum() < 20:
            holes.append(1)
            return math.nan
        return precision_score(targets, decided)

    found = call(metric=precision, method="cma-es", queries=60, steps=5)
    assert found.metric_after > found.metric_before
    assert found.spent.queries == 60
    assert 0 < len(holes) <= 20

"""The arms of a table: how the row a spec names is run on its bench.

A `method` chooses phi, and an `oracle` does so on test itself; a `network` method
trains the whole network; `threshold-shift` and `class-offsets` move the decision. Each
ends in an outcome on the splits.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import baselines
import metricopt.methods
from baselines.class_offsets import OffsetSearch, tune_offsets
from baselines.network_method import NETWORK_METHODS
from baselines.threshold_shift import tune_threshold
from benchmarks.artifacts import Artifact, get_or_make
from benchmarks.bench import Bench
from benchmarks.diagnosis import DIGITS, diagnose, rounded
from benchmarks.image_bench import ImageBench
from benchmarks.records import VALUE_FUNCTION, RunSpec
from benchmarks.tasks import bench_of, metric_of
from benchmarks.uci_bench import UCIBench
from metricopt.errors import BudgetExceededError, ConfigError
from metricopt.meta_training import MetaTrained
from metricopt.method import METHODS, Method
from metricopt.methods.metricopt import LiteralMetricOpt, MetricOpt
from metricopt.metrics import make_metric
from metricopt.metrics.base import Metric, from_cost
from metricopt.network_task import Judge
from metricopt.observations import Budget
from metricopt.recipe import Recipe
from metricopt.registry import import_units
from metricopt.result import FinetuneResult
from metricopt.value_function import ValueFunction


@dataclass(frozen=True)
class Outcome:
    """What a run reports, in native metric units; see `RunRecord`."""

    observe: list[float]
    test: list[float]
    queries: int = 0
    shared_queries: int = 0
    gradient_steps: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def run_arm(spec: RunSpec) -> Outcome:
    """Run what a spec names and judge it on the test split.

    Raises:
        ConfigError: if the spec names an unknown kind of arm, method or metric.
    """
    kinds: dict[str, Callable[[RunSpec, Bench, Metric], Outcome]] = {
        "method": _run_method,
        "oracle": _run_oracle,
        "network": _run_network,
        "threshold-shift": _run_threshold_shift,
        "class-offsets": _run_class_offsets,
    }
    kind = spec.settings["arm"]["kind"]
    if kind not in kinds:
        raise ConfigError(f"unknown kind of arm {kind!r}; known: {', '.join(kinds)}")
    bench = bench_of(dict(spec.settings), spec.replicate)
    return kinds[kind](spec, bench, metric_of(dict(spec.settings)))


def build_method(name: str, settings: dict[str, Any]) -> Method:
    """Return a registered method with JSON settings, nested recipes included."""
    import_units(metricopt.methods)
    settings = dict(settings)
    kind = METHODS.get(name)
    if "recipe" in settings:
        base: Recipe = kind.recipe  # type: ignore[attr-defined]
        changes = dict(settings["recipe"])
        if "rollout" in changes:
            rollout = dataclasses.replace(base.rollout, **changes["rollout"])
            changes["rollout"] = rollout
        settings["recipe"] = dataclasses.replace(base, **changes)
    if "steps" in settings:
        settings["steps"] = tuple(settings["steps"])
    return kind(**settings)


def _run_method(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    arm, rows = spec.settings["arm"], spec.settings["meta_tests"]
    budget = Budget(**spec.settings["budget"])
    method = build_method(arm["name"], arm["settings"])
    task = bench.task(metric)
    if hasattr(method, "rate"):
        own = getattr(method, "optimizer", "sgd")
        optimizer = getattr(method, "trajectories", own)
        rate = bench.rate(task, optimizer, budget.gradient_steps)
        method = dataclasses.replace(method, rate=rate)  # type: ignore[type-var]
    notes: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    if isinstance(method, MetricOpt | LiteralMetricOpt):
        trained, seconds = _trained(method, bench, metric, budget)
        method = dataclasses.replace(method, trained=trained)
        if spec.settings["diagnose"]:
            notes = diagnose(method, trained, bench, metric)
    task.query_limit = budget.queries * rows
    generator = bench.generator("fine-tuning", metric.name)
    result = method.run(task, budget, generator, rows=rows)
    if result.queries > budget.queries:
        raise BudgetExceededError(
            f"{arm['name']} may spend {budget.queries} metric queries, and spent "
            f"{result.queries}"
        )
    outcome = _judged(result, bench, metric, notes)
    return dataclasses.replace(outcome, seconds=seconds)


def _run_oracle(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    """Search on the test split: what the adapter can express, not what one can find."""
    arm = spec.settings["arm"]
    method = build_method(arm["name"], arm["settings"])
    generator = bench.generator("fine-tuning", metric.name)
    result = method.run(
        bench.oracle_task(metric),
        Budget(**spec.settings["budget"]),
        generator,
        rows=spec.settings["meta_tests"],
    )
    return _judged(result, bench, metric, {})


def _trained(
    method: MetricOpt | LiteralMetricOpt, bench: Bench, metric: Metric, budget: Budget
) -> tuple[MetaTrained, dict[str, float]]:
    """Return the value function of a method, and the seconds its training took.

    It is shared by all rows that would train it.
    """
    key = {
        "bench": bench.key,
        "metric": metric.name,
        "recipe": dataclasses.asdict(method.fitted_recipe(budget)),
        "trajectories": getattr(method, "trajectories", "sgd"),
        "rate": method.rate,
        "literal": isinstance(method, LiteralMetricOpt),
    }

    def make() -> Artifact:
        # Every recipe meets the same trajectory noise: ablations differ in one thing.
        generator = bench.generator("meta-training", metric.name)
        started = time.perf_counter()
        task = bench.task(metric)
        task.query_limit = budget.queries
        trained = method.train(task, budget, generator)
        facts = {
            "queries": trained.queries,
            "spread": trained.spread,
            "reach": trained.reach,
            "seconds": round(time.perf_counter() - started, 3),
        }
        return Artifact(dict(trained.value_function.state_dict()), facts)

    tensors, facts = get_or_make("value-function", key, make)
    value_function = ValueFunction(bench.adapter.size)
    value_function.load_state_dict(tensors)
    queries = int(str(facts["queries"]))
    spread, reach = (float(str(facts[name])) for name in ("spread", "reach"))
    trained = MetaTrained(value_function.eval(), queries, spread, reach, [])
    # Artifacts of earlier code do not tell.
    known = "seconds" in facts
    return trained, {VALUE_FUNCTION: float(str(facts["seconds"]))} if known else {}


def _judged(
    result: FinetuneResult, bench: Bench, metric: Metric, notes: dict[str, Any]
) -> Outcome:
    """Evaluate the chosen phi, and the way there, on the test split: the one time."""
    judge = bench.judge(metric)
    rows = len(result.phi)
    visited = torch.cat([point.phi for point in result.checkpoints] + [result.phi])
    values = judge.values(visited).view(-1, rows)
    trace = [
        {
            "step": point.step,
            "queries": point.queries,
            "observe": _native(point.cost, metric),
            "test": rounded(test),
        }
        for point, test in zip(result.checkpoints, values[:-1], strict=True)
    ]
    observed = bench.task(metric).observe(result.phi)
    return Outcome(
        observe=rounded(from_cost(metric, observed)),
        test=rounded(values[-1]),
        queries=result.queries,
        shared_queries=result.shared_queries,
        gradient_steps=result.gradient_steps,
        trace=trace,
        notes=result.notes | notes | _other_metrics(metric, judge, result.phi),
    )


def _run_network(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    import_units(baselines)
    if not isinstance(bench, UCIBench):
        raise ConfigError("arms of kind 'network' are of the UCI protocol alone")
    arm = spec.settings["arm"]
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in arm["settings"].items()
    }
    method = NETWORK_METHODS.get(arm["name"])(**settings)
    start = bench.theta if arm["from_theta"] else bench.fresh_network()
    result = method.train(
        start,
        bench.splits.train,
        bench.splits.observe,
        metric=metric,
        schedule=bench.schedule(**arm["schedule"]),
        generator=bench.generator("network", spec.row, metric.name),
    )
    splits = bench.splits
    observe = metric.value(
        result.predict(splits.observe.inputs), splits.observe.targets
    )
    outputs = result.predict(splits.test.inputs)
    test = metric.value(outputs, splits.test.targets)
    return Outcome(
        [round(observe, DIGITS)],
        [round(test, DIGITS)],
        queries=result.queries,
        gradient_steps=result.gradient_steps,
        notes=dict(result.notes) | _legacy(metric, outputs[None], splits.test.targets),
    )


def _run_threshold_shift(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    zero = torch.zeros(1, bench.adapter.size)
    outputs = bench.task(metric).observed.outputs(zero)[0]
    shift = tune_threshold(outputs, bench.splits.observe.targets, metric=metric)
    judge = bench.judge(metric)
    shifted = judge.outputs(zero) - shift.threshold
    test = metric.value(shifted[0], judge.targets)
    return Outcome(
        [round(shift.value, DIGITS)],
        [round(test, DIGITS)],
        queries=shift.queries,
        notes={"threshold": shift.threshold} | _legacy(metric, shifted, judge.targets),
    )


def _run_class_offsets(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    zero = torch.zeros(1, bench.adapter.size)
    observed, judge = bench.task(metric).observed, bench.judge(metric)
    if not isinstance(bench, ImageBench):
        raise ConfigError("arms of kind 'class-offsets' are of images alone")
    classes = bench.problem.classes
    on_observe, on_test = (
        one.outputs(zero)[0, :, :classes] for one in (observed, judge)
    )
    search = OffsetSearch(**spec.settings["arm"]["settings"])
    found = tune_offsets(on_observe, observed.targets, metric=metric, search=search)

    def test(offsets: Tensor) -> float:
        shifted = on_test.log_softmax(1) + offsets
        return round(metric.value(shifted, judge.targets), DIGITS)

    trace = [
        {
            "step": 0,
            "queries": point.queries,
            "observe": [round(point.value, DIGITS)],
            "test": [test(point.offsets)],
        }
        for point in found.trace
    ]
    return Outcome(
        [round(found.value, DIGITS)],
        [test(found.offsets)],
        queries=found.queries,
        trace=trace,
        notes={"offsets": rounded(found.offsets, 3)},
    )


def _legacy(metric: Metric, outputs: Tensor, targets: Tensor) -> dict[str, Any]:
    """Return what scikit-learn before 0.23 gave as Jaccard index, next to the real one.

    Args:
        metric: the metric of the run.
        outputs: on the test split, shape [R, N, 1].
        targets: shape [N].
    """
    if metric.name != "jaccard":
        return {}
    legacy = make_metric("jaccard-legacy").values(outputs, targets)
    return {"test_legacy": rounded(legacy)}


def _other_metrics(metric: Metric, judge: Judge, phi: Tensor) -> dict[str, Any]:
    """Return what is told of the chosen phi beside its metric."""
    if metric.name == "jaccard":
        return _legacy(metric, judge.outputs(phi), judge.targets)
    if metric.name == "aucpr":
        by_logit = make_metric("aucpr-macro-logits")
        values = Judge(judge.adapter, by_logit, judge.features, judge.targets).values
        return {"test_logits": rounded(values(phi))}
    return {}


def _native(cost: Tensor, metric: Metric) -> list[float] | None:
    if bool(torch.isnan(cost).all()):
        return None
    return rounded(from_cost(metric, cost))

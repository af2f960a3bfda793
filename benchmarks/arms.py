"""The arms of a table: how the row a spec names is run on its bench.

Three kinds: a `method` chooses phi, a `network` method trains the whole network, and
`threshold-shift` moves the decision threshold. Each ends in an outcome on the splits.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import baselines
import metricopt.methods
from baselines.network_method import NETWORK_METHODS
from baselines.threshold_shift import tune_threshold
from benchmarks.artifacts import Artifact, get_or_make
from benchmarks.records import RunSpec
from benchmarks.tasks import Bench, bench_of, metric_of
from metricopt.errors import ConfigError
from metricopt.health import Health, check_health
from metricopt.meta_training import MetaTrained
from metricopt.method import METHODS, Method
from metricopt.methods.metricopt import LiteralMetricOpt, MetricOpt
from metricopt.metrics import make_metric
from metricopt.metrics.base import Metric, from_cost
from metricopt.observations import Budget, Trajectories, concatenate
from metricopt.recipe import Recipe
from metricopt.registry import import_units
from metricopt.result import FinetuneResult
from metricopt.trajectories import collect, loss_optimizer
from metricopt.value_function import ValueFunction

# Held-out trajectories of the health check, half of them guided, and their queries.
HEALTH_TRAJECTORIES, HEALTH_OBSERVATIONS = 20, 10
DIGITS = 6
"""Decimals kept of metric values in records."""


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
        "network": _run_network,
        "threshold-shift": _run_threshold_shift,
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
    rollout = getattr(method, "recipe", Recipe()).rollout
    if hasattr(method, "rate"):
        optimizer = getattr(method, "trajectories", "sgd")
        rate = bench.rate(task, optimizer, rollout)
        method = dataclasses.replace(method, rate=rate)  # type: ignore[type-var]
    notes: dict[str, Any] = {}
    if isinstance(method, MetricOpt | LiteralMetricOpt):
        trained = _trained(method, bench, metric, budget)
        method = dataclasses.replace(method, trained=trained)
        if spec.settings["diagnose"]:
            notes = _diagnose(method, trained, bench, metric, spec.replicate)
    task.query_limit = budget.queries * rows
    generator = bench.generator("fine-tuning", metric.name)
    result = method.run(task, budget, generator, rows=rows)
    return _judged(result, bench, metric, notes)


def _trained(
    method: MetricOpt | LiteralMetricOpt, bench: Bench, metric: Metric, budget: Budget
) -> MetaTrained:
    """Return the value function of a method, shared by all rows that would train it."""
    recipe = dataclasses.asdict(method.recipe)
    literal = isinstance(method, LiteralMetricOpt)
    key = {
        "bench": bench.key,
        "metric": metric.name,
        "recipe": recipe,
        "rate": method.rate,
        "literal": literal,
        "queries": budget.queries,
    }

    def make() -> Artifact:
        # Every recipe meets the same trajectory noise: ablations differ in one thing.
        generator = bench.generator("meta-training", metric.name)
        trained = method.train(bench.task(metric), budget, generator)
        facts = {
            "queries": trained.queries,
            "spread": trained.spread,
            "reach": trained.reach,
        }
        return Artifact(dict(trained.value_function.state_dict()), facts)

    tensors, facts = get_or_make("value-function", key, make)
    value_function = ValueFunction(bench.adapter.size)
    value_function.load_state_dict(tensors)
    queries = int(str(facts["queries"]))
    spread, reach = (float(str(facts[name])) for name in ("spread", "reach"))
    return MetaTrained(value_function.eval(), queries, spread, reach, [])


def _diagnose(
    method: MetricOpt | LiteralMetricOpt,
    trained: MetaTrained,
    bench: Bench,
    metric: Metric,
    replicate: int,
) -> dict[str, Any]:
    """Check a value function on held-out trajectories, outside the method's budget."""
    task = bench.task(metric)
    generator = bench.generator("health", metric.name)
    rollout = dataclasses.replace(
        method.recipe.rollout, observations=HEALTH_OBSERVATIONS
    )
    rows = HEALTH_TRAJECTORIES // 2
    loss = loss_optimizer("sgd", method.rate or 0.1)
    follower, step = MetricOpt(), method.recipe.step_share
    guided = follower.guided(trained, rollout.steps, generator, step=step)
    parts = [
        collect(task, factory, rollout, rows=rows, generator=generator)
        for factory in (loss, guided)
    ]
    on_loss, on_guided = (check_health(trained.value_function, part) for part in parts)
    both = check_health(trained.value_function, concatenate(parts))
    notes: dict[str, Any] = {
        "spearman": both.spearman,
        "spearman_loss": on_loss.spearman,
        "spearman_guided": on_guided.spearman,
        "value_error": both.error,
    }
    if replicate == 0:
        notes |= _pictures(both, trained.value_function, concatenate(parts), metric)
    return notes


def _pictures(
    health: Health,
    value_function: ValueFunction,
    held_out: Trajectories,
    metric: Metric,
) -> dict[str, list[float]]:
    """Return the points of Fig. 2c and of predicted against true metric."""
    rows = torch.arange(len(held_out))[:, None]
    phi = held_out.phi[rows, held_out.steps].flatten(0, 1)
    with torch.no_grad():
        embedding = value_function.embed(phi).numpy()
    # Imported here: it takes seconds, and few runs draw.
    from sklearn.manifold import TSNE

    place = TSNE(random_state=0, init="pca", n_jobs=1).fit_transform(embedding)
    return {
        "health_predicted": _rounded(health.predicted, 4),
        "health_true": _rounded(health.observed, 4),
        "embedding_x": _rounded(torch.from_numpy(place[:, 0]), 2),
        "embedding_y": _rounded(torch.from_numpy(place[:, 1]), 2),
        "embedding_cost": _rounded(health.observed, 4),
    }


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
            "test": _rounded(test),
        }
        for point, test in zip(result.checkpoints, values[:-1], strict=True)
    ]
    observed = bench.task(metric).observe(result.phi)
    return Outcome(
        observe=_rounded(from_cost(metric, observed)),
        test=_rounded(values[-1]),
        queries=result.queries,
        shared_queries=result.shared_queries,
        gradient_steps=result.gradient_steps,
        trace=trace,
        notes=result.notes
        | notes
        | _legacy(metric, judge.outputs(result.phi), judge.targets),
    )


def _run_network(spec: RunSpec, bench: Bench, metric: Metric) -> Outcome:
    import_units(baselines)
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
    observe_task = bench.task(metric)
    zero = torch.zeros(1, bench.adapter.size)
    outputs = bench.adapter.predict(observe_task.observed.features, zero)[0]
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
    return {"test_legacy": _rounded(legacy)}


def _native(cost: Tensor, metric: Metric) -> list[float] | None:
    if bool(torch.isnan(cost).all()):
        return None
    return _rounded(from_cost(metric, cost))


def _rounded(values: Tensor, digits: int = DIGITS) -> list[float]:
    return [round(value, digits) for value in values.tolist()]

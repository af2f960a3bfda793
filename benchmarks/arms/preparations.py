"""The method that an arm names, and what it prepares: made once, kept for all runs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from baselines.phi_methods.contract import RIVALS
from benchmarks.arms.contract import AuditedMetric, check_counts
from benchmarks.problems.contract import Pipeline
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import changed, decode, encode
from benchmarks.runs.record import VALUE_FUNCTION
from benchmarks.runs.spec import Arm, RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.known import (
    COSTS,
    Known,
    KnownStatistics,
    KnownValueFunction,
)
from metricopt.methods.result import Budget
from metricopt.on_outputs.no_harm import NoHarm


def make_method(arm: Arm) -> Method:
    """Return the method an arm names, its defaults changed as the arm says.

    An arm of the kind `no-harm` holds what it proposes against the untouched network.

    Raises:
        ConfigError: if there is no such method or setting.
    """
    if arm.name not in METHODS and arm.name not in RIVALS:
        known = ", ".join(sorted({*METHODS, *RIVALS}))
        raise ConfigError(f"unknown method {arm.name!r}; known: {known}")
    registry = METHODS if arm.name in METHODS else RIVALS
    method = changed(registry.get(arm.name)(), arm.settings)
    return NoHarm(method) if arm.kind == "no-harm" else method


def budget_of(spec: RunSpec) -> Budget:
    """Return what one result of a run may cost."""
    return Budget(spec.budget.queries, spec.budget.gradient_steps)


@dataclass(frozen=True)
class Prepared:
    """What the runs of a method share.

    Attributes:
        preparation: what the method made.
        made: metric queries it took, by split.
        seconds: wall seconds it took, by phase.
    """

    preparation: Preparation = field(default_factory=Preparation)
    made: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def prepare(
    method: Method, spec: RunSpec, pipeline: Pipeline, number: int = 0
) -> Prepared:
    """Return what a method prepares once, made now or found in the cache.

    Args:
        method: what prepares.
        spec: the run.
        pipeline: what it runs on.
        number: number of the value function; each is trained with noise of its own.

    Raises:
        FairnessError: if the preparation reports other queries than it made.
    """
    budget, label = budget_of(spec), spec.metric.label
    own_key = method.preparation_key(budget)
    if own_key is None:
        return Prepared()
    # The first value function has the names it had when there was only one.
    several = {"value_function": number} if number else {}

    def make() -> Artifact:
        # Every recipe meets the same trajectory noise: ablations differ in one thing.
        seeds = pipeline.seeds
        generator = seeds.generator("meta-training", label, *several.values())
        started = time.perf_counter()
        metric = AuditedMetric(pipeline.metric(spec.metric))
        task = pipeline.task(metric)
        task.meter.limit = budget.queries
        made = method.prepare(task, budget, generator)
        check_counts(
            spec.arm.name,
            evaluated=metric.evaluations,
            counted=task.queries,
            reported=made.queries,
        )
        seconds = {VALUE_FUNCTION: round(time.perf_counter() - started, 3)}
        facts = {"made": task.meter.made, "facts": made.facts, "seconds": seconds}
        return Artifact(made.tensors, facts)

    key = {"metric": label, "method": spec.arm.name, "key": own_key, **several}
    kept = get_or_make("preparation", key | {"pipeline": pipeline.key}, make)
    facts = decode(_Facts, kept.facts)
    queries = sum(facts.made.values())
    shared = Preparation(queries, kept.tensors, dict(facts.facts))
    return Prepared(shared, facts.made, facts.seconds)


@dataclass(frozen=True)
class _Facts:
    """Facts of a kept preparation, by their names in the file."""

    made: Mapping[str, int]
    facts: Mapping[str, float]
    seconds: Mapping[str, float]


def learned(spec: RunSpec, source: Pipeline) -> Known:
    """Return what the method of a run learns of its metric on another pipeline.

    Its queries are made there, and are no part of the run's budget.
    """
    if spec.arm.learning:
        spending = replace(spec.budget, queries=spec.arm.learning)
        spec = replace(spec, budget=spending)
    method, budget, label = make_method(spec.arm), budget_of(spec), spec.metric.label
    with source.sealed():
        if method.preparation_key(budget) is not None:
            made = prepare(method, spec, source).preparation
            found = KnownValueFunction(made.tensors, made.facts)
            return found.made_for(source.adapter_settings)

        def make() -> Artifact:
            task = source.task(source.metric(spec.metric))
            generator = source.seeds.generator("learning", label)
            (known,) = method.run(task, budget, generator).known
            assert isinstance(known, KnownStatistics)
            return Artifact({COSTS: known.costs, **known.groups}, {})

        own = encode(replace(spec.arm, source=None, learning=0))
        key = {"metric": label, "arm": own, "budget": encode(spec.budget)}
        groups = dict(
            get_or_make("known", key | {"pipeline": source.key}, make).tensors
        )
    costs = groups.pop(COSTS)
    return KnownStatistics(groups, costs)


def trains_value_function(spec: RunSpec) -> bool:
    """Whether the method of a run prepares something."""
    return make_method(spec.arm).preparation_key(budget_of(spec)) is not None


def sees_of_method(arm: Arm) -> Sees:
    """Return what the method of an arm knows of its problem."""
    return make_method(arm).sees

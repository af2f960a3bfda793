"""Arms that choose phi: by a method, by a second run of it, or by an oracle on test.

What a method prepares is made once, and kept for all runs.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from baselines.phi_methods.contract import RIVALS
from benchmarks.arms.contract import (
    ARMS,
    ArmKind,
    audited,
    check_budget,
    check_counts,
    evaluations,
)
from benchmarks.arms.diagnosis import diagnose
from benchmarks.arms.results import budget_of, chosen_of, fine_tuning_generator
from benchmarks.problems.choices import Chosen, Trained, together
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import canonical, changed, decode, encode
from benchmarks.runs.record import VALUE_FUNCTION
from benchmarks.runs.spec import Arm, RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.known import COSTS, Known, KnownStatistics, KnownValueFunction
from metricopt.methods.result import Budget
from metricopt.metrics.base import Metric
from metricopt.on_outputs.no_harm import NoHarm
from metricopt.registry import find

STATISTICS_REVISION = 3
"""Raised when statistics change: nothing that was learned of old ones is used."""


def make_method(arm: Arm) -> Method:
    """Return the method an arm names, its defaults changed as the arm says.

    An arm of the kind `no-harm` holds what it proposes against the untouched network.

    Raises:
        ConfigError: if there is no such method or setting.
    """
    method = changed(find(arm.name, METHODS, RIVALS)(), arm.settings)
    return NoHarm(method) if arm.kind == "no-harm" else method


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
    method: Method, spec: RunSpec, pipeline: NetworkPipeline, number: int = 0
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
        metric, audits = audited(pipeline.metric(spec.metric))
        task = pipeline.task(metric)
        task.meter.limit = budget.queries
        made = method.prepare(task, budget, generator)
        check_counts(
            spec.arm.name,
            evaluated=evaluations(audits),
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


def learned(spec: RunSpec, source: NetworkPipeline) -> Known:
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
        key["revision"] = STATISTICS_REVISION
        groups = dict(
            get_or_make("known", key | {"pipeline": source.key}, make).tensors
        )
    costs = groups.pop(COSTS)
    return KnownStatistics(groups, costs)


def preparation_of(spec: RunSpec) -> str:
    """Return the identity of what the method of a run prepares; empty for nothing."""
    key = make_method(spec.arm).preparation_key(budget_of(spec))
    count = spec.value_functions
    shared = [spec.metric.label, spec.arm.name, key, count]
    return "" if key is None else canonical(shared)


def run_method(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Choose phi on the observe split, with every value function of the run.

    Raises:
        ConfigError: if the method does not suit the tasks of the pipeline, or has no
            value function where several are asked for.
        FairnessError: if one result cost more than its budget.
    """
    count = spec.value_functions
    if count > 1 and not preparation_of(spec):
        raise ConfigError(
            f"{spec.arm.name} trains nothing that its runs share, so one run cannot "
            f"have {count} value functions"
        )
    parts = [_with_one(number, spec, pipeline, metric) for number in range(count)]
    return together(parts) if count > 1 else parts[0]


def _with_one(
    number: int, spec: RunSpec, pipeline: NetworkPipeline, metric: Metric
) -> Chosen:
    """Choose phi with one value function, if the method has any."""
    task, method = pipeline.task(metric), make_method(spec.arm)
    if spec.arm.source is not None:
        known = learned(spec, make_pipeline(spec.arm.source, pipeline.replicate))
        method = method.knowing(known, pipeline.adapter_settings)
    if not method.suits(task):
        raise ConfigError(
            f"{spec.arm.name} does not suit tasks of the pipeline {spec.pipeline.name}"
        )
    prepared = prepare(method, spec, pipeline, number)
    trained = method.value_function(prepared.preparation)
    notes: dict[str, Any] = {}
    if spec.diagnose and trained is not None:
        notes = diagnose(trained, pipeline, spec)
    task.meter.limit = spec.budget.queries * spec.meta_tests
    result = method.run(
        task,
        budget_of(spec),
        fine_tuning_generator(spec, pipeline),
        rows=spec.meta_tests,
        prepared=prepared.preparation,
    )
    check_budget(spec.arm.name, spent=result.queries, allowed=spec.budget.queries)
    chosen = chosen_of(result, metric, task.meter.made)
    return replace(
        chosen,
        prepared=prepared.made,
        notes=dict(chosen.notes) | notes,
        seconds=dict(prepared.seconds),
    )


def run_oracle(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Search on the test split: what the adapter can express, not what one can find."""
    task = pipeline.oracle_task(metric)
    result = make_method(spec.arm).run(
        task,
        budget_of(spec),
        fine_tuning_generator(spec, pipeline),
        rows=spec.meta_tests,
    )
    return chosen_of(result, metric, {"test": task.queries})


def run_second(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Fine-tune phi, train theta with it, and fine-tune phi of the new network.

    Raises:
        ConfigError: if the method learns no value function of phi, the run has several
            results, or the pipeline trains no network further.

    Source: Huang et al., CVPR 2021, Sec. 4.3: "we build on the finetuned phi in the
    first run, and continue to fine-tune theta (using cross-entropy loss) followed by a
    quick adjustment of phi". Open there: how long theta is trained, which the schedule
    of the arm says, and where the second value function comes from: here it is the
    first one.
    """
    method = make_method(spec.arm)
    if spec.meta_tests > 1:
        raise ConfigError(
            f"a second run needs one meta-test, as it trains a network for it, got "
            f"{spec.meta_tests}"
        )
    generator = pipeline.seeds.generator("second run", spec.metric.label)
    prepared, budget = prepare(method, spec, pipeline), budget_of(spec)
    task = pipeline.task(metric)
    first = method.run(task, budget, generator, prepared=prepared.preparation)
    onwards = method.starting(first.phi)
    moved = pipeline.continued(first.phi[0], spec.arm.schedule, generator=generator)
    known = first.known[0].made_for(pipeline.adapter_settings)
    again = onwards.knowing(known, moved.adapter_settings)
    other = moved.task(metric)
    left = Budget(budget.queries - first.queries, budget.gradient_steps)
    second = again.run(other, left, generator)
    spent = first.queries + second.queries
    check_budget(spec.arm.name, spent=spent, allowed=budget.queries)

    def predict(inputs: Tensor) -> Tensor:
        return moved.predict(inputs, second.phi[0])

    made = Counter(task.meter.made)
    made.update(other.meter.made)
    return Chosen(
        Trained(predict),
        queries=spent,
        gradient_steps=first.gradient_steps + second.gradient_steps,
        evaluations=dict(made),
        prepared=prepared.made,
        notes={"step": second.notes["step"]},
        seconds=dict(prepared.seconds),
    )


def _sees(arm: Arm) -> Sees:
    return make_method(arm).sees


METHOD = ArmKind(run_method, preparation_of, sees=_sees)
ARMS.register("method")(METHOD)
ARMS.register("no-harm")(METHOD)
ARMS.register("oracle")(ArmKind(run_oracle, reads_test=True, sees=lambda arm: "test"))
ARMS.register("second-run")(ArmKind(run_second, preparation_of, sees=_sees))

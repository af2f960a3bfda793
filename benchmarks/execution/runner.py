"""Runs specs: seeds, timing, the test split and records; done runs are skipped.

Small networks leave a second thread idle, so two processes with one thread each are
faster than one with two. A worker takes a group of runs that share a pipeline.
"""

import time
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.arms.contract import ARMS, import_for, run_arm
from benchmarks.execution.processes import run_groups
from benchmarks.problems.choices import Chosen
from benchmarks.problems.contract import PIPELINES, Pipeline, make_pipeline
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.environment import device_name, environment
from benchmarks.runs.record import DIGITS, RunRecord, TracePoint
from benchmarks.runs.spec import RunSpec, check_unique
from benchmarks.runs.store import RunStore
from metricopt.errors import DivergedError, MetricOptError


def run_all(
    specs: Sequence[RunSpec],
    store: RunStore,
    *,
    workers: int,
    redo: Collection[str] = (),
) -> list[RunSpec]:
    """Run every spec that has no record yet, with progress and remaining time.

    Args:
        specs: what to run.
        store: where records go, each as soon as its run ends.
        workers: processes; 1 runs in this one.
        redo: digests of specs that are run although they have a record.

    Returns:
        The specs that were run.

    Raises:
        ConfigError: if two specs fill the same place, or the store is not writable.
        MetricOptError: if a worker process is killed.
    """
    missing = missing_runs(specs, store, redo)
    if not missing:
        return []
    with progress(len(missing)) as report:
        groups = in_groups(missing)
        if workers == 1:
            for group in groups:
                run_group(group, store, report)
        else:
            # The longest first: no worker ends long after the others.
            groups.sort(key=len, reverse=True)
            run_groups(groups, store, workers, run_group, report)
    return missing


def missing_runs(
    specs: Sequence[RunSpec], store: RunStore, redo: Collection[str] = ()
) -> list[RunSpec]:
    """Return the specs that are to be run; see `run_all`.

    Raises:
        ConfigError: if two specs fill the same place, or the store is not writable.
    """
    check_unique(specs)
    store.ensure_writable()
    return [s for s in specs if s.digest in redo or store.get(s) is None]


@contextmanager
def progress(count: int) -> Iterator[Callable[[str], None]]:
    """Show how many runs have ended; what is given is called with the name of each."""
    with tqdm(total=count, unit="run", smoothing=0.05) as bar:

        def report(name: str) -> None:
            bar.set_description(name[:40].ljust(40))
            bar.update()

        yield report


def run_group(
    group: Sequence[RunSpec], store: RunStore, report: Callable[[str], None]
) -> None:
    """Run specs that share a pipeline, in this process, on one thread."""
    # Tensors here are too small for more.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pipeline = make_pipeline(group[0].pipeline, group[0].replicate)
        machine = environment() | {"device": device_name(pipeline.device)}
        for spec in group:
            execute(spec, pipeline, store, machine)
            report(f"{spec.column} {spec.row}")
    finally:
        torch.set_num_threads(threads)


def execute(
    spec: RunSpec, pipeline: Pipeline, store: RunStore, machine: Mapping[str, str]
) -> RunRecord:
    """Run one spec and write its record."""
    record = measured(spec, pipeline, machine)
    store.put(record)
    return record


def measured(
    spec: RunSpec, pipeline: Pipeline, machine: Mapping[str, str]
) -> RunRecord:
    """Run one spec and return its record; a run that fails is recorded as such."""
    import_for(spec.arm)
    started = time.perf_counter()
    facts: dict[str, Any] = {
        "spec": spec,
        "data": pipeline.data,
        "environment": machine,
        "seeds": pipeline.recorded_seeds,
    }
    try:
        facts["data"] = pipeline.data | pipeline.network_data
        judged = judge(run_arm(spec, pipeline), spec, pipeline)
    except MetricOptError as error:
        status = "diverged" if isinstance(error, DivergedError) else "failed"
        return RunRecord(status=status, message=str(error), **facts)
    seconds = {"total": round(time.perf_counter() - started, 3)}
    judged["seconds"] = seconds | judged["seconds"]
    return RunRecord(status="done", **facts, **judged)


def judge(chosen: Chosen, spec: RunSpec, pipeline: Pipeline) -> dict[str, Any]:
    """Evaluate what an arm chose, and the way there: the one look at the test split.

    Returns:
        Fields of a record.
    """
    metrics = pipeline.metrics(spec.metrics)
    choices = [*(point.choice for point in chosen.points), chosen.choice]
    *passed, test = pipeline.evaluate(choices, "test", metrics)
    (observe,) = pipeline.evaluate([chosen.choice], "observe", metrics)
    picture = pipeline.pictured(chosen.choice) if spec.pictured else {}
    label = spec.metric.label
    trace = tuple(
        TracePoint(
            point.step,
            point.queries,
            {} if point.observe is None else {label: _rounded(point.observe)},
            _values(values),
        )
        for point, values in zip(chosen.points, passed, strict=True)
    )
    return {
        "queries": chosen.queries,
        "shared_queries": chosen.shared_queries,
        "gradient_steps": chosen.gradient_steps,
        "queried": chosen.queried,
        "seconds": dict(chosen.seconds),
        "trace": trace,
        "observe": _values(observe),
        "test": _values(test),
        "notes": dict(chosen.notes) | picture,
    }


def in_groups(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Return the runs of every worker's turn, in their order.

    Runs in a group share a pipeline and a replicate. If the pipeline is dear, they
    share a column, too, and either all train a value function or none does, so that
    few pipelines keep more than one worker busy.
    """
    ordered = sorted(specs, key=lambda spec: (_turn(spec), spec.cell))
    return [list(group) for _, group in groupby(ordered, key=_turn)]


def _turn(spec: RunSpec) -> tuple[str, int, str, bool]:
    text = canonical(encode(spec.pipeline))
    if PIPELINES.get(spec.pipeline.name).shares_columns:
        return text, spec.replicate, "", False
    prepares = ARMS.get(spec.arm.kind).prepares(spec)
    return text, spec.replicate, spec.column, bool(prepares)


def _values(values: Mapping[str, Tensor]) -> dict[str, list[float]]:
    return {label: _rounded(row.tolist()) for label, row in values.items()}


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, DIGITS) for value in values]

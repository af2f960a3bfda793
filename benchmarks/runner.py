"""Runs specs: owns timing, seeds, records and worker processes; done runs are skipped.

Small networks leave a second thread idle, so two processes with one thread each are
faster than one with two. A worker takes a group of runs that share a bench.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import groupby

from tqdm import tqdm

from benchmarks.environment import device_name, environment
from benchmarks.records import RunRecord, RunSpec, RunStore, check_unique
from metricopt.errors import DivergedError, MetricOptError


def run_all(
    specs: Sequence[RunSpec], store: RunStore, *, workers: int
) -> list[RunSpec]:
    """Run every spec that has no record yet, with progress and remaining time.

    Args:
        specs: what to run.
        store: where records go, each as soon as its run ends.
        workers: processes; 1 runs in this one.

    Returns:
        The specs that were run.

    Raises:
        ConfigError: if two specs fill the same place, or the store is not writable.
        MetricOptError: if a worker process is killed.
    """
    check_unique(specs)
    store.ensure_writable()
    missing = [spec for spec in specs if store.get(spec) is None]
    if not missing:
        return []
    with tqdm(total=len(missing), unit="run", smoothing=0.05) as bar:
        if workers == 1:
            _work_here(missing, store, bar)
        else:
            _work_in_processes(missing, store, bar, workers)
    return missing


def _work_here(missing: list[RunSpec], store: RunStore, bar: "tqdm[None]") -> None:
    limit_threads()
    for spec in _in_order(missing):
        bar.set_description(f"{spec.column} {spec.row}"[:40].ljust(40))
        execute(spec, store)
        bar.update()


def _work_in_processes(
    missing: list[RunSpec], store: RunStore, bar: "tqdm[None]", workers: int
) -> None:
    # A fresh interpreter: forking one whose torch has started threads may hang.
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    groups = sorted(_groups(missing), key=len, reverse=True)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(done,)
    )
    with pool:
        futures = [pool.submit(_run_group, group, store) for group in groups]
        reporter = threading.Thread(target=_report, args=(done, bar), daemon=True)
        reporter.start()
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException as error:
            _stop(pool, done)
            if isinstance(error, BrokenProcessPool):
                raise MetricOptError(
                    "a worker process was killed, maybe for want of memory; finished "
                    "runs are kept, and the same command goes on"
                ) from error
            raise
        done.put(None)
        reporter.join()


def _stop(pool: ProcessPoolExecutor, done: "multiprocessing.Queue[str | None]") -> None:
    """End the workers now: neither an error nor an interrupt waits for their groups."""
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in multiprocessing.active_children():
        worker.terminate()
    # One of them may have held the lock of the queue.
    done.cancel_join_thread()


def _report(done: "multiprocessing.Queue[str | None]", bar: "tqdm[None]") -> None:
    while (name := done.get()) is not None:
        bar.set_description(name[:40].ljust(40))
        bar.update()


_DONE: "multiprocessing.Queue[str | None] | None" = None


def _start_worker(done: "multiprocessing.Queue[str | None]") -> None:
    global _DONE
    _DONE = done
    limit_threads()
    # The parent is interrupted as well, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        # A killed parent cannot stop its workers; they notice.
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_group(specs: list[RunSpec], store: RunStore) -> None:
    for spec in specs:
        execute(spec, store)
        if _DONE is not None:
            _DONE.put(f"{spec.column} {spec.row}")


def limit_threads() -> None:
    """Use one thread: tensors here are too small for more."""
    import torch

    torch.set_num_threads(1)


def execute(spec: RunSpec, store: RunStore) -> RunRecord:
    """Run one spec and write its record; a run that fails is recorded as such."""
    from benchmarks.arms import run_arm
    from benchmarks.tasks import bench_of

    started = time.perf_counter()
    bench = bench_of(dict(spec.settings), spec.replicate)
    facts = {
        "spec": spec,
        "data": bench.data,
        "environment": environment() | {"device": device_name(bench.device)},
        "seeds": {
            "split": spec.replicate,
            "theta": bench.theta_seed,
            "adapter": bench.seed("adapter"),
        },
    }
    try:
        facts["data"] = bench.data | bench.network_data
        outcome = run_arm(spec)
    except MetricOptError as error:
        status = "diverged" if isinstance(error, DivergedError) else "failed"
        record = RunRecord(status=status, message=str(error), **facts)
    else:
        seconds = {"total": round(time.perf_counter() - started, 3)}
        record = RunRecord(
            status="done",
            queries=outcome.queries,
            shared_queries=outcome.shared_queries,
            gradient_steps=outcome.gradient_steps,
            seconds=seconds | outcome.seconds,
            trace=outcome.trace,
            observe=outcome.observe,
            test=outcome.test,
            notes=outcome.notes,
            **facts,
        )
    store.put(record)
    return record


def _groups(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    ordered = _in_order(specs)
    return [list(group) for _, group in groupby(ordered, key=_group_place)]


def _in_order(specs: Iterable[RunSpec]) -> list[RunSpec]:
    return sorted(specs, key=lambda spec: (_group_place(spec), spec.cell))


def _group_place(spec: RunSpec) -> tuple[str, int, str, bool]:
    """Return what the runs of one worker's turn have in common.

    They share a bench; where its network is there before all runs, also a column, and
    a value function or none, so that few benches keep more than one worker busy.
    """
    from benchmarks.tasks import bench_text, kind_of

    settings = dict(spec.settings)
    prepared = kind_of(settings).prepared
    column = spec.column if prepared else ""
    learns = prepared and "recipe" in settings["arm"]["settings"]
    return bench_text(settings), spec.replicate, column, learns

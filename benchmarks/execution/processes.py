"""Worker processes: groups of runs dealt out, progress gathered, all ended together.

Nothing here needs metricopt, whose import takes seconds and half a gigabyte: only
errors import it.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.managers import SyncManager
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Queue
from typing import TypeVar


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let processes that are started here ignore interrupts; their parent ends them.

    From their first moment: an interrupt while they import prints what nobody can use.
    The parent gets an interrupt that comes meanwhile at the end of the context.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_worker() -> None:
    """Prepare a worker process."""
    # The parent is interrupted as well, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def give_way() -> None:
    """Let this process use only what others leave of the processor.

    Without effect where the system has no such thing: it is Linux's.
    """
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Terminals share the processor equally, whatever the processes in them ask for.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19", encoding="utf-8")


def end_with_parent() -> None:
    """Let this process end with its parent, which cannot see to it when killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


Group = TypeVar("Group")
Place = TypeVar("Place")
Work = Callable[[Group, Place, Callable[[str], None]], None]
"""Does the runs of a group and reports the name of each that has ended."""


def run_groups(
    groups: Sequence[Group],
    place: Place,
    workers: int,
    work: Work[Group, Place],
    report: Callable[[str], None],
) -> None:
    """Do every group in one of several processes.

    Args:
        groups: each is done as a whole by one process, the first ones first.
        place: handed to every call of `work`.
        workers: number of processes.
        work: a module's function; it is called in the processes.
        report: called here with the name of every run that has ended.

    Raises:
        MetricOptError: if a process is killed.
    """
    # A fresh interpreter: forking one whose torch has started threads may hang.
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    with uninterrupted():
        manager.start(end_with_parent)
    with manager:
        ended: Queue[str | None] = manager.Queue()
        reporter = threading.Thread(target=_report, args=(ended, report), daemon=True)
        reporter.start()
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=start_worker
        )
        try:
            with pool, _stopped_at_errors(pool, others):
                with uninterrupted():
                    futures = [
                        pool.submit(work, group, place, ended.put) for group in groups
                    ]
                for future in as_completed(futures):
                    future.result()
        finally:
            # Runs that ended before an error are reported, too.
            ended.put(None)
            reporter.join()


@contextmanager
def _stopped_at_errors(
    pool: ProcessPoolExecutor, others: Sequence[BaseProcess]
) -> Iterator[None]:
    """End the workers of a pool where an error or an interrupt leaves the context.

    Args:
        pool: what is ended.
        others: processes that are no workers of the pool.
    """
    try:
        yield
    except BaseException as error:
        # Now: neither an error nor an interrupt waits for what the workers are at.
        processes = [p for p in multiprocessing.active_children() if p not in others]
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in processes:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            from metricopt.errors import MetricOptError

            raise MetricOptError(
                "a worker process was killed, maybe for want of memory; "
                "finished runs are kept, and the same command goes on"
            ) from error
        raise


def _report(ended: "Queue[str | None]", report: Callable[[str], None]) -> None:
    while (name := ended.get()) is not None:
        report(name)

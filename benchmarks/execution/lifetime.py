"""How long helper processes live: no longer than their parent.

Nothing here needs metricopt, whose import takes seconds and half a gigabyte.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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


def end_with_parent() -> None:
    """Let this process end with its parent, which cannot see to it when killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""How long helper processes live: no longer than their parent.

Nothing here needs metricopt, whose import takes seconds and half a gigabyte.
"""

import multiprocessing
import os
import signal
import threading


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

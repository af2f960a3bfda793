"""Work for worker processes, which import it by its name, and start at once.

Nothing here needs metricopt, whose import takes seconds.
"""

import os
import signal
import sys
import time
from pathlib import Path

LONG = 60.0


def note_process(group, folder, report):
    """Write the id of the process that does each part of a group."""
    for name in group:
        (Path(folder) / name).write_text(str(os.getpid()))
        report(name)


def kill_itself(group, folder, report):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(group, folder, report):
    """Break off in one group; the other would last for long."""
    if group[0] == "long":
        note_process(group, folder, report)
        time.sleep(LONG)
    while not (Path(folder) / "long").exists():
        time.sleep(0.05)
    raise ValueError("the group is broken")


def sleep(group, folder, report):
    note_process(group, folder, report)
    time.sleep(LONG)


if __name__ == "__main__":
    from benchmarks.execution.processes import run_groups

    # A shell may have started this in the background, where it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_groups([["one"], ["two"]], sys.argv[1], 2, sleep, print)

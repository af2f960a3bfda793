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
    """Report each part of a group, then write the id of the process that does it.

    Whoever sees the file may end the process: by then the report has been made.
    """
    for name in group:
        report(name)
        (Path(folder) / name).write_text(str(os.getpid()))


def kill_itself(group, folder, report):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(group, folder, report):
    """Break off in one group; the other would last for long."""
    if group[0] == "long":
        note_process(group, folder, report)
        time.sleep(LONG)
    wait_for("long", folder)
    raise ValueError("the group is broken")


def sleep(group, folder, report):
    """Report group "two" after group "one", whichever process starts first."""
    if group[0] == "two":
        wait_for("one", folder)
    note_process(group, folder, report)
    time.sleep(LONG)


def wait_for(name, folder):
    """Wait until a part of another group is reported."""
    while not (Path(folder) / name).exists():
        time.sleep(0.05)


if __name__ == "__main__":
    from benchmarks.execution.processes import run_groups

    # A shell may have started this in the background, where it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_groups([["one"], ["two"]], sys.argv[1], 2, sleep, print)

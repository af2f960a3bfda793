"""Disturb a table on a cluster at random moments, and compare.

`python -m tests.benchmarks.execution.cluster_kills` starts it; it needs Ray.

The table must equal that of one undisturbed process byte for byte, with one record per
run. What happens is that a worker process is killed, a worker loses its artifacts, or
the command itself is killed and started again.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.execution.kills import (
    Sandbox,
    differences,
    finish,
    parser,
)
from tests.benchmarks.execution.local_cluster import (
    LocalCluster,
    environment_with_token,
    local_cluster,
)

KINDS = ("worker", "artifacts", "driver")
PAUSE = (1.0, 9.0)
"""Seconds between one disturbance and the next."""


def disturb(kind, cluster: LocalCluster, process, draws: random.Random) -> str:
    """Do one thing to a cluster; return what it was, empty if there was nothing."""
    if kind == "driver":
        os.killpg(process.pid, signal.SIGKILL)
        return "the command was killed"
    if kind == "worker":
        busy = {p: t for p, t in cluster.workers().items() if "IDLE" not in t}
        if not busy:
            return ""
        pid = draws.choice(sorted(busy))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return f"{busy[pid]} was killed"
    folder = cluster.cache(draws.randrange(len(cluster.processes))) / "artifacts"
    if not folder.exists():
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    return f"{folder.parent.name} lost its artifacts"


def disturbed_run(
    command: Sequence[str],
    site: Sandbox,
    cluster: LocalCluster,
    kinds: list,
    draws: random.Random,
    *,
    pause: tuple[float, float] = PAUSE,
) -> None:
    """Run a command to its end, and meanwhile do all of `kinds` that there is time for.

    Args:
        command: what is run.
        site: where.
        cluster: what is disturbed.
        kinds: what is done; what was done is removed.
        draws: decides the moments.
        pause: least and most seconds between two.
    """
    process, due = site.start(command), time.monotonic() + draws.uniform(*pause)
    while process.poll() is None:
        time.sleep(0.05)
        if not kinds or time.monotonic() < due:
            continue
        done = disturb(kinds[0], cluster, process, draws)
        if done:
            print(f"{len(kinds)} to go: {done}", flush=True)
            if kinds.pop(0) == "driver":
                process.wait()
                process = site.start(command)
            due = time.monotonic() + draws.uniform(*pause)
    site.check(process.returncode)


def run(command, cluster, folder: Path, kinds: Sequence[str], seed: int) -> list[str]:
    """Return every difference from an undisturbed process as a sentence."""
    calm, draws, left = Sandbox(folder / "calm"), random.Random(seed), list(kinds)
    finish((*command, "--workers", "1"), calm)
    problems = []
    for number in range(1, 1000):
        site = Sandbox(folder / f"round-{number}")
        on_cluster = (*command, "--cluster", cluster.address)
        disturbed_run(on_cluster, site, cluster, left, draws)
        found = differences(calm, site)
        print(f"round {number}: {len(found)} differences", flush=True)
        problems += found
        if not left:
            return problems
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the test and return the exit code: 0 if nothing differs, else 1."""
    accepted = parser("tests.benchmarks.execution.cluster_kills")
    accepted.add_argument("--experiment", default="table3")
    accepted.add_argument("--port", type=int, default=6411)
    options = accepted.parse_args(arguments)
    os.environ.update(environment_with_token())
    command = (sys.executable, "-P", "-m", "benchmarks", options.experiment)
    command += ("--tier", "smoke", "--replicates", "1")
    kinds = ["worker"] * options.times + ["artifacts", "driver"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        local_cluster(2, options.port) as cluster,
    ):
        problems = run(command, cluster, Path(folder), kinds, options.seed)
    for problem in problems:
        print(problem)
    print(f"{len(kinds)} disturbances: {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

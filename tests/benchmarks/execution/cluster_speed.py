"""Time a table on one worker and on two, and hold it against what `plan` predicts.

`python -m tests.benchmarks.execution.cluster_speed` starts it, for Table 3 or the table
that is named; it needs Ray, and two cores that are free.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.execution.planned import predicted, tasks_of
from benchmarks.runs.record import RunRecord
from tests.benchmarks.execution.kills import Sandbox, differences, parser
from tests.benchmarks.execution.local_cluster import (
    environment_with_token,
    local_cluster,
    wait_for,
)
from tests.benchmarks.execution.ways import COLUMN, HERE


def timed(command: Sequence[str], site: Sandbox) -> tuple[float, list[RunRecord]]:
    """Run a command; return its seconds until the last record, and the records.

    The report is made by one process, whatever the number of workers.
    """
    begun = time.time()
    site.check(site.start(command).wait())
    paths = list(site.store.rglob("record.json"))
    ended = max(path.stat().st_mtime for path in paths)
    return ended - begun, [RunRecord.from_json(path.read_text()) for path in paths]


def prediction(records: Sequence[RunRecord], workers: int) -> float:
    """Return the seconds that runs take with some workers, from those measured."""
    seconds = {record.spec.digest: record.total_seconds for record in records}
    tasks = tasks_of([record.spec for record in records], seconds, {})
    return predicted(tasks, workers).wall


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the seconds of both, and by how much two workers are faster."""
    accepted = parser("tests.benchmarks.execution.cluster_speed")
    accepted.add_argument("table", nargs="?", default="table3")
    accepted.add_argument("--tier", default="smoke")
    accepted.add_argument("--column", default="", help="the only one that is run")
    accepted.add_argument("--replicates", default="2")
    accepted.add_argument("--port", type=int, default=6431)
    options = accepted.parse_args(arguments)
    os.environ.update(environment_with_token() | {"OMP_NUM_THREADS": "1"})
    command = (sys.executable, "-P", "-m", "benchmarks")
    if options.column:
        command, os.environ[COLUMN] = HERE, options.column
    command += (options.table, "--tier", options.tier)
    command += ("--replicates", options.replicates)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        local_cluster(1, options.port) as cluster,
    ):
        command += ("--cluster", cluster.address)
        one, two = (Sandbox(Path(folder) / name) for name in ("one", "two"))
        alone, records = timed(command, one)
        work = prediction(records, 1)
        print(f"one worker: {alone:.1f} s until the last record, runs {work:.1f} s")
        # Nothing is left of the first table but what it wrote.
        cluster.forget()
        cluster.add_worker()
        wait_for(cluster.folder / "2.log", "Ray runtime started")
        together, _ = timed(command, two)
        expected = alone - work + prediction(records, 2)
        print(f"two workers: {together:.1f} s, predicted {expected:.1f} s")
        problems = differences(one, two)
    print(f"{alone / together:.2f} times as fast, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""One column of a table on one process, as two shards, and on a cluster; compare.

`python -m tests.benchmarks.execution.ways table1 methods/mcr --tier local` starts it.
It needs Ray. Networks that are not released are trained in each way anew.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.__main__ import main
from tests.benchmarks.execution.kills import Sandbox, differences, finish

COLUMN = "METRICOPT_TEST_COLUMN"
"""Environment variable that names the column a process keeps to."""
HERE = (sys.executable, "-P", "-m", "tests.benchmarks.execution.ways")


def one_column(name, column):
    """Return an experiment with a single column."""
    from benchmarks.tables.registry import find_experiment

    experiment = find_experiment(name)

    def specs(tier, replicates, offline):
        found = experiment.specs(tier, replicates, offline)
        return [spec for spec in found if spec.column == column]

    return replace(experiment, specs=specs)


def compare(table, column, *options):
    """Make the column in all ways; return how many of them differ from one process."""
    from tests.benchmarks.execution.local_cluster import local_cluster

    os.environ |= {COLUMN: column, "OMP_NUM_THREADS": "1"}
    path = [os.getcwd(), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    command = (*HERE, table, *options)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        calm, merged, spread = (
            Sandbox(Path(folder) / name) for name in ("one", "merged", "cluster")
        )
        seconds = finish((*command, "--workers", "1"), calm)
        runs = len(list(calm.store.rglob("record.json")))
        print(f"one process: {runs} runs, {seconds:.0f} s", flush=True)
        assert runs, f"{table} has no column {column}"
        shards = [Sandbox(Path(folder) / f"shard-{part}") for part in (1, 2)]
        for part, shard in enumerate(shards, 1):
            own = ("--workers", "1", "--shard", f"{part}/2")
            seconds = finish((*command, *own), shard)
            runs = len(list(shard.store.rglob("record.json")))
            print(f"shard {part} of 2: {runs} runs, {seconds:.0f} s", flush=True)
        stores = [str(shard.store) for shard in shards]
        finish((*HERE, "report", table, *options, "--merge", *stores), merged)
        differing = _differs("two shards", calm, merged)
        with local_cluster(2, 6431, loopback=True) as cluster:
            seconds = finish((*command, "--cluster", cluster.address), spread)
        print(f"cluster of two workers: {seconds:.0f} s", flush=True)
        return differing + _differs("the cluster", calm, spread)


def _differs(way, calm, site):
    """Print what differs from one process; return whether anything does."""
    found = differences(calm, site)
    print(f"{way}: {len(found)} differences", *found, sep="\n  ", flush=True)
    return bool(found)


if __name__ == "__main__":
    from benchmarks.tables.registry import EXPERIMENTS

    if COLUMN not in os.environ:
        sys.exit(compare(*sys.argv[1:]))
    for own in [name for name in sys.argv[1:3] if name in EXPERIMENTS]:
        EXPERIMENTS._units[own] = one_column(own, os.environ[COLUMN])
    sys.exit(main())

"""The verb `report`: write reports from the finished runs, without running anything."""

from argparse import Namespace

from benchmarks.cli.jobs import ensure_writable, jobs_of
from benchmarks.runs.paths import store_root
from benchmarks.runs.store import RunStore


def run(options: Namespace) -> int:
    """Write the reports of some experiments."""
    store = RunStore(store_root())
    for job in jobs_of(options, offline=True):
        ensure_writable(job.folder)
        job.write_report(job.records(store))
        print(f"wrote {job.folder}")
    return 0

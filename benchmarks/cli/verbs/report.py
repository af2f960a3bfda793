"""The verb `report`: write reports from the finished runs, without running anything."""

from argparse import Namespace

from benchmarks.cli.jobs import jobs_of
from benchmarks.runs.paths import ensure_writable, store_root
from benchmarks.runs.store import RunStore


def run(options: Namespace) -> int:
    """Write the reports of some experiments."""
    store = RunStore(store_root())
    jobs = jobs_of(options, offline=True)
    for job in jobs:
        ensure_writable("the results folder", job.folder)
    for job in jobs:
        job.write_report(job.records(store))
        print(f"wrote {job.folder}")
    return 0

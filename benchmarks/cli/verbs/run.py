"""The verbs of experiments: make the runs that are missing, then print the report."""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.cli.jobs import (
    Job,
    default_workers,
    jobs_of,
    reference,
)
from benchmarks.runs.paths import cache_root, ensure_writable, store_root
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore


def run(options: Namespace) -> int:
    """Run what is missing in some experiments and report each.

    All checks come first, so that nothing starts or is marked if one fails.
    """
    jobs = jobs_of(options, offline=options.offline)
    store = RunStore(store_root())
    check_places(jobs, store)
    specs = [spec for job in jobs for spec in job.specs]
    redo = mark_fresh(specs, store) if options.fresh else frozenset()
    if not options.fresh:
        _mention_stale(specs, store)
    for spec in specs:
        if spec.digest not in redo:
            # A damaged record of the last table is named before the first is run.
            store.get(spec)
    for job in jobs:
        _run_job(job, store, options.workers or default_workers(), redo)
    return 0


def check_places(jobs: Sequence[Job], store: RunStore) -> None:
    """Check that all folders are writable and that all disks have space.

    Raises:
        ConfigError: if not; the message names the folder.
        DataError: if committed records, which the report shows, are damaged.
    """
    store.ensure_writable()
    ensure_writable("the cache", cache_root())
    for job in jobs:
        ensure_writable("the results folder", job.folder)
        reference(job.folder)


def mark_fresh(specs: Sequence[RunSpec], store: RunStore) -> frozenset[str]:
    """Mark records that are to be made again and return the digests of their specs.

    If an interrupted `--fresh` left marks, only those runs are still to be repeated.
    A marked record stays readable until the new one replaces it.
    """
    stale = store.stale(specs)
    if stale:
        print(
            f"an earlier --fresh was interrupted: {len(stale)} of {len(specs)} runs "
            "are still to be repeated",
            file=sys.stderr,
        )
    else:
        store.mark_stale(specs)
        stale = store.stale(specs)
    return frozenset(spec.digest for spec in stale)


def _mention_stale(specs: Sequence[RunSpec], store: RunStore) -> None:
    stale = store.stale(specs)
    if stale:
        print(
            f"an earlier --fresh was interrupted before it repeated {len(stale)} of "
            f"{len(specs)} runs; their old records are used, and --fresh goes on",
            file=sys.stderr,
        )


def _mention_failed(repeated: Sequence[RunSpec], store: RunStore) -> None:
    kept = store.stale(repeated)
    if kept:
        print(
            f"{len(kept)} of {len(repeated)} repeated runs failed: their old records "
            f"are used, --fresh tries them again, and {store.path(kept[0])}.failed "
            "says why",
            file=sys.stderr,
        )


def _run_job(job: Job, store: RunStore, workers: int, redo: frozenset[str]) -> None:
    # Imported here so that the checks above come at once.
    from benchmarks.execution.runner import prepare, run_all
    from benchmarks.report.page import terminal_page

    started = time.perf_counter()
    specs = job.specs
    prepare([s for s in specs if s.digest in redo or store.get(s) is None])
    workers = max(1, min(workers, len(specs)))
    done = len(run_all(specs, store, workers=workers, redo=redo))
    print(
        f"{job.label}: {done} of {len(specs)} runs made in "
        f"{(time.perf_counter() - started) / 60:.1f} minutes, "
        f"{len(specs) - done} were there"
    )
    _mention_failed([spec for spec in specs if spec.digest in redo], store)
    records = job.records(store)
    if not _is_reported(job, records):
        job.write_report(records)
    print(terminal_page(job.folder))


def _is_reported(job: Job, records: Sequence[RunRecord]) -> bool:
    """Return whether the report shows these records beside today's committed ones."""
    lines, page = job.folder / "records.jsonl", job.folder / "table.md"
    text = "".join(f"{record.to_json()}\n" for record in records)
    if not (lines.is_file() and page.is_file()):
        return False
    if lines.read_bytes() != text.encode():
        return False
    if not job.committed.is_file():
        return True
    return job.committed.stat().st_mtime <= lines.stat().st_mtime

"""The verbs of experiments: their runs and their reports.

Whatever takes seconds to import is imported where it is needed, so that checks come at
once.
"""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runs.paths import (
    COMMITTED_RESULTS,
    OWN_RESULTS,
    cache_root,
    ensure_writable,
    store_root,
)
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore, gather, read_jsonl
from benchmarks.tables.registry import Experiment, experiment_names, find_experiment
from metricopt.errors import DataError

MAX_WORKERS = 16


@dataclass(frozen=True)
class Job:
    """One experiment at one tier.

    Attributes:
        experiment: the experiment.
        tier: `paper`, `local` or `smoke`.
        specs: runs of the experiment.
        results: folder of all reports.
    """

    experiment: Experiment
    tier: str
    specs: Sequence[RunSpec]
    results: Path

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"{self.experiment.name} ({self.tier})"

    @property
    def folder(self) -> Path:
        """Folder of the report."""
        return self.results / self.experiment.name / self.tier

    @property
    def committed(self) -> Path:
        """File of the committed records, which need not exist."""
        return COMMITTED_RESULTS / self.experiment.name / self.tier / "records.jsonl"

    def records(self, store: RunStore) -> list[RunRecord]:
        """Return the records of the finished runs, sorted.

        Raises:
            DataError: if no run is finished.
        """
        found = gather(store, self.specs)
        if not found:
            raise DataError(f"no run of {self.label} is finished yet")
        return found

    def write_report(self, records: Sequence[RunRecord]) -> None:
        """Write the report, with the committed figures beside those of the user."""
        # Imported here because it takes seconds and other verbs do not need it.
        from benchmarks.report.page import write_report

        layout = self.experiment.layout(self.tier)
        write_report(layout, records, self.folder, reference=reference(self.folder))


def jobs_of(options: Namespace, *, offline: bool | None) -> list[Job]:
    """Return the jobs of a command; no named experiment means all of them.

    Args:
        options: options of the command line.
        offline: whether downloads are forbidden, see `resolve_variant`.

    Raises:
        DataError: if data are missing and cannot be downloaded.
    """
    jobs = []
    for name in options.experiments or experiment_names():
        experiment = find_experiment(name)
        tier = options.tier or experiment.default_tier
        specs = experiment.specs(tier, options.replicates, offline)
        jobs.append(Job(experiment, tier, specs, results_root(options)))
    return jobs


def committed_records(experiment: str, tier: str) -> list[RunRecord]:
    """Return the committed records; empty if there are none.

    Raises:
        DataError: if the file is damaged.
    """
    path = COMMITTED_RESULTS / experiment / tier / "records.jsonl"
    return read_jsonl(path) if path.is_file() else []


def reference(folder: Path) -> list[RunRecord] | None:
    """Return the committed records that a report shows beside its own.

    Args:
        folder: folder of the report, `<results>/<experiment>/<tier>`.

    Returns:
        The records, empty if none are committed; None for a committed report itself.

    Raises:
        DataError: if the committed records are damaged.
    """
    committed = (COMMITTED_RESULTS / folder.parent.name).resolve()
    if folder.resolve().is_relative_to(committed):
        return None
    return committed_records(folder.parent.name, folder.name)


def results_root(options: Namespace) -> Path:
    """Return the folder of all reports that the options choose."""
    if getattr(options, "results", None):
        return Path(options.results).expanduser().absolute()
    if getattr(options, "commit_results", False):
        return COMMITTED_RESULTS
    return OWN_RESULTS


def default_workers() -> int:
    """Return the number of processes if none is given: one per core."""
    return min(os.cpu_count() or 1, MAX_WORKERS)


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


def report(options: Namespace) -> int:
    """Write the reports of some experiments from the finished runs."""
    store = RunStore(store_root())
    jobs = jobs_of(options, offline=True)
    for job in jobs:
        ensure_writable("the results folder", job.folder)
    for job in jobs:
        job.write_report(job.records(store))
        print(f"wrote {job.folder}")
    return 0

"""The verbs of experiments: their runs and their reports.

Whatever takes seconds to import is imported where it is needed, so that checks come at
once.
"""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.runs.merge import merge, strangers
from benchmarks.runs.paths import (
    COMMITTED_RESULTS,
    OWN_RESULTS,
    cache_root,
    ensure_writable,
    store_root,
)
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore, gather, jsonl, read_jsonl
from benchmarks.tables.registry import Experiment, experiment_names, find_experiment
from metricopt.errors import DataError

MAX_WORKERS = 16


@dataclass(frozen=True)
class Job:
    """One experiment at one tier.

    Attributes:
        experiment: the experiment.
        tier: `paper`, `local` or `smoke`.
        specs: runs of the experiment, or of a part of it.
        results: folder of all reports.
        part: number of the part, and number of parts; None for the whole.
    """

    experiment: Experiment
    tier: str
    specs: Sequence[RunSpec]
    results: Path
    part: tuple[int, int] | None = None

    @property
    def label(self) -> str:
        """Name for messages."""
        part = "shard {}/{} of ".format(*self.part) if self.part else ""
        return f"{part}{self.experiment.name} ({self.tier})"

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

    def planned(self) -> dict[str, float]:
        """Return the seconds of runs by digest, as far as committed records know any.

        Without records of the tier, those of another one tell which rows are long.
        """
        from benchmarks.execution.planned import planned_seconds

        name, usual = self.experiment.name, self.experiment.default_tier
        records = committed_records(name, self.tier) or committed_records(name, usual)
        return planned_seconds(self.specs, records)

    def shard(self, number: int, count: int) -> "Job":
        """Return one of several parts, the same on every machine with this commit."""
        from benchmarks.execution.shards import shards_of

        specs = shards_of(self.specs, count, self.planned())[number - 1]
        return replace(self, specs=specs, part=(number, count))

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

    All checks come first, so that nothing starts or is marked if one fails. Without
    names, what takes days is left out, but for its miniature.
    """
    jobs = jobs_of(options, offline=options.offline)
    if not options.experiments:
        jobs = [job for job in jobs if not _left_out(job)]
    if options.shard:
        jobs = [job.shard(*options.shard) for job in jobs]
    store = RunStore(store_root())
    check_places(jobs, store)
    specs = [spec for job in jobs for spec in job.specs]
    redo = _to_repeat(specs, store, fresh=options.fresh)
    for spec in specs:
        if spec.digest not in redo:
            # A damaged record of the last table is named before the first is run.
            store.get(spec)
    for job in jobs:
        _run_job(job, store, options, redo)
    return 0


def _left_out(job: Job) -> bool:
    """Return whether a job is run only by its name; say so if it is."""
    if not job.experiment.takes_days or job.tier == "smoke":
        return False
    name = job.experiment.name
    print(f"{name} takes days, so it is left out; ./reproduce.sh {name} runs it")
    return True


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


def _to_repeat(
    specs: Sequence[RunSpec], store: RunStore, *, fresh: bool
) -> frozenset[str]:
    """Return the digests of specs whose records are to be made again.

    With `--fresh` these are all, which are marked. If an interrupted `--fresh` left
    marks, it is those that are left. A marked record stays readable until the new one
    replaces it.
    """
    stale = store.stale(specs)
    if stale:
        count = f"{len(stale)} of {len(specs)} runs"
        _mention(
            f"an earlier --fresh was interrupted: {count} are still to be repeated"
            if fresh
            else f"an earlier --fresh was interrupted before it repeated {count}; "
            "their old records are used, and --fresh goes on"
        )
    elif fresh:
        store.mark_stale(specs)
        stale = store.stale(specs)
    return frozenset(spec.digest for spec in stale if fresh)


def _mention(text: str) -> None:
    print(text, file=sys.stderr)


def _run_job(
    job: Job, store: RunStore, options: Namespace, redo: frozenset[str]
) -> None:
    # Imported here so that the checks above come at once.
    from benchmarks.report.page import terminal_page

    started = time.perf_counter()
    specs = job.specs
    if options.cluster:
        done = _run_on_cluster(job, store, options.cluster, redo)
    else:
        done = _run_here(specs, store, options.workers or default_workers(), redo)
    print(
        f"{job.label}: {done} of {len(specs)} runs made in "
        f"{(time.perf_counter() - started) / 60:.1f} minutes, "
        f"{len(specs) - done} were there"
    )
    repeated = [spec for spec in specs if spec.digest in redo]
    kept = store.stale(repeated)
    if kept:
        _mention(
            f"{len(kept)} of {len(repeated)} repeated runs failed: their old records "
            f"are used, --fresh tries them again, and {store.path(kept[0])}.failed "
            "says why"
        )
    if job.part:
        name = job.experiment.name
        print(
            f"records are in {store.root}; `report {name} --tier {job.tier} --merge "
            "DIR ...` makes the report of all shards"
        )
        return
    records = job.records(store)
    if not _is_reported(job, records):
        job.write_report(records)
    print(terminal_page(job.folder))


def _run_here(
    specs: Sequence[RunSpec], store: RunStore, workers: int, redo: frozenset[str]
) -> int:
    """Make the runs that are missing on this machine; return their number."""
    from benchmarks.execution.networks import prepare
    from benchmarks.execution.runner import run_all

    prepare([s for s in specs if s.digest in redo or store.get(s) is None])
    workers = max(1, min(workers, len(specs)))
    return len(run_all(specs, store, workers=workers, redo=redo))


def _run_on_cluster(
    job: Job, store: RunStore, address: str, redo: frozenset[str]
) -> int:
    """Make the runs that are missing on a cluster; return their number."""
    from benchmarks.execution.cluster import run_on_cluster

    seconds = job.planned()
    made = run_on_cluster(job.specs, store, address=address, redo=redo, seconds=seconds)
    return len(made)


def _is_reported(job: Job, records: Sequence[RunRecord]) -> bool:
    """Return whether the report shows these records beside today's committed ones."""
    lines, page = job.folder / "records.jsonl", job.folder / "table.md"
    if not (lines.is_file() and page.is_file()):
        return False
    if lines.read_bytes() != jsonl(records).encode():
        return False
    committed, written = job.committed, lines.stat().st_mtime
    return not committed.is_file() or committed.stat().st_mtime <= written


def report(options: Namespace) -> int:
    """Write the reports of some experiments from the finished runs.

    Those of other stores are taken over first, if the options name any.
    """
    store = RunStore(store_root())
    jobs = jobs_of(options, offline=True)
    for job in jobs:
        ensure_writable("the results folder", job.folder)
    if options.merge:
        _merge(options.merge, store, jobs)
    for job in jobs:
        job.write_report(job.records(store))
        print(f"wrote {job.folder}")
    return 0


def _merge(folders: Sequence[str], store: RunStore, jobs: Sequence[Job]) -> None:
    """Take over the records of other stores, and say how many there were."""
    store.ensure_writable()
    sources = [RunStore(Path(folder).expanduser().absolute()) for folder in folders]
    specs = [spec for job in jobs for spec in job.specs]
    taken = merge(sources, store, specs)
    experiments = [(job.experiment.name, job.tier) for job in jobs]
    for source, count in zip(sources, taken, strict=True):
        print(f"{count} records taken over from {source.root}")
        others = strangers(source, experiments, specs)
        if others:
            _mention(
                f"{others} records in {source.root} are of runs that are not planned "
                "here: made with other data, --replicates or code"
            )

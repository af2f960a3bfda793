"""What a command asks for: an experiment at a tier, its runs and its report."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runs.paths import COMMITTED_RESULTS, OWN_RESULTS
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore, gather, read_jsonl
from benchmarks.tables.registry import (
    Experiment,
    experiment_names,
    find_experiment,
)
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
        return committed_file(self.experiment.name, self.tier)

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


def committed_file(experiment: str, tier: str) -> Path:
    """Return the file of the committed records, which need not exist."""
    return COMMITTED_RESULTS / experiment / tier / "records.jsonl"


def committed_records(experiment: str, tier: str) -> list[RunRecord]:
    """Return the committed records; empty if there are none.

    Raises:
        DataError: if the file is damaged.
    """
    path = committed_file(experiment, tier)
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

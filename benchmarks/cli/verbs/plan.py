"""The verb `plan`: how many runs and hours, and how much disk, an experiment takes."""

import re
from argparse import Namespace
from collections.abc import Sequence
from statistics import fmean

from benchmarks.cli.verbs.experiments import (
    Job,
    committed_records,
    default_workers,
    jobs_of,
)
from benchmarks.execution.networks import networks_of, pipelines_of
from benchmarks.problems.pretrained.weights import released_costs
from benchmarks.report.render import align
from benchmarks.runs.paths import store_root
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore
from metricopt.errors import ConfigError

HEADER = (
    *("experiment", "tier", "runs", "missing", "hours"),
    *("networks", "GPU hours", "features GB", "records MB"),
)
RECORD_KILOBYTES = 6
GPU = 20e12
"""Floating-point operations of a GPU in a second, in training convolutions."""


def run(options: Namespace) -> int:
    """Print one line per experiment, and which rows named ones leave out.

    No data are needed for it.
    """
    store = RunStore(store_root())
    jobs, rows, unknown = [], [], []
    for job in jobs_of(options, offline=None):
        try:
            rows.append(_row(job, store))
            jobs.append(job)
        except ConfigError as error:
            # Of all experiments, one may need a package that is not installed.
            if options.experiments:
                raise
            unknown.append(f"{job.label} is left out: {error}")
    if options.workers:
        times = [_times(job, store, options.workers) for job in jobs]
        heading = f"hours with {options.workers}", "work", "longest", "path"
        rows = [(*row, *more) for row, more in zip(rows, times, strict=True)]
        print(align([(*HEADER, *heading), *rows]))
    else:
        print(align([HEADER, *rows]))
    print(
        "hours: of the missing runs, with one process per core, from the committed "
        "records of the tier; networks: how many have to be trained first; GPU hours: "
        f"of their training, at {GPU / 1e12:.0f} TFLOP/s; features GB: of all images "
        "of one network, in memory, and in the cache as far as that has room."
    )
    if options.workers:
        print(
            f"with {options.workers}: hours until the last of the missing runs ends, "
            "each on one of so many workers, after its network; work: hours of all, "
            "one after the other; longest: of one; path: of the longest chain that "
            "waits for each other, less than which no number of workers takes. From "
            "the run store, else from the committed records of the tier."
        )
    for line in filter(None, [*(_to_train(job, store) for job in jobs), *unknown]):
        print(line)
    for job in jobs if options.experiments else ():
        for line in left_out_lines(job):
            print(line)
    return 0


def _to_train(job: Job, store: RunStore) -> str:
    """Return what the missing networks of a job take; empty if none is missing.

    Networks that differ in the replicate alone take as long, and as much disk.
    """
    kinds: dict[str, list[tuple[float, int]]] = {}
    for name, cost in released_costs().items():
        kinds.setdefault(_kind(name), []).append(cost)
    missing = [spec for spec in job.specs if store.get(spec) is None]
    wanted = [_kind(n.name) for n in networks_of(missing) if not n.is_ready]
    known = [kinds[kind] for kind in wanted if kind in kinds]
    if not known:
        return ""
    hours = sum(fmean(seconds for seconds, _ in costs) for costs in known) / 3600
    size = sum(fmean(size for _, size in costs) for costs in known) / 1e6
    others = len(wanted) - len(known)
    more = f"; {others} more of a kind that none is released of" if others else ""
    return (
        f"{job.label}: {len(known)} of its networks take {hours:.1f} hours one after "
        f"the other and {size:.0f} MB, as those released took{more}"
    )


def _kind(name: str) -> str:
    """Return the name of a network without its replicate."""
    return re.sub(r"-r\d+$", "", name)


def left_out_lines(job: Job) -> list[str]:
    """Return which rows an experiment leaves out, a line a reason."""
    left_out = job.experiment.left_out(job.tier)
    lines = [f"- {reason}: {'; '.join(rows)}" for reason, rows in left_out.items()]
    return [f"\n{job.label} leaves out", *lines] if lines else []


def _times(job: Job, store: RunStore, workers: int) -> tuple[str, ...]:
    """Return the hours of the missing runs with some workers, and what bounds them."""
    from benchmarks.execution.planned import planned_seconds, predicted, tasks_of

    missing = [spec for spec in job.specs if store.get(spec) is None]
    own = [record for spec in job.specs if (record := store.get(spec))]
    # What this machine measured of a row says more of it than any other.
    rows = {record.spec.row for record in own}
    records = committed_records(job.experiment.name, job.tier)
    records = [record for record in records if record.spec.row not in rows]
    seconds = planned_seconds(missing, [*own, *records])
    found = predicted(tasks_of(missing, seconds, _trainings(missing)), workers)
    hours = (found.wall, found.work, found.longest, found.path)
    return tuple(f"{part / 3600:.3g}" for part in hours)


def _trainings(missing: Sequence[RunSpec]) -> dict[str, float]:
    """Return the seconds in which a GPU trains the networks that are not there yet."""
    untrained = {n.digest for n in networks_of(missing) if not n.is_ready}
    forecasts = (pipeline.forecast() for pipeline in pipelines_of(missing))
    found = {f.network: f.operations / GPU for f in forecasts if f is not None}
    return {digest: seconds for digest, seconds in found.items() if digest in untrained}


def _row(job: Job, store: RunStore) -> tuple[str, ...]:
    missing = [spec for spec in job.specs if store.get(spec) is None]
    known = _known_seconds(job)
    unknown = sum(spec.row not in known for spec in missing)
    hours = sum(known.get(spec.row, 0.0) for spec in missing) / 3600
    estimate = f"{hours / default_workers():.2f}"
    untrained = {n.digest for n in networks_of(missing) if not n.is_ready}
    forecasts = [p.forecast() for p in pipelines_of(missing)]
    known_work = [forecast for forecast in forecasts if forecast is not None]
    features = max((forecast.feature_bytes for forecast in known_work), default=0)
    return (
        job.experiment.name,
        job.tier,
        str(len(job.specs)),
        str(len(missing)),
        estimate + (f" + {unknown} unknown" if unknown else ""),
        str(len(untrained)),
        f"{sum(_trainings(missing).values()) / 3600:.1f}",
        f"{features / 1e9:.1f}",
        f"{len(job.specs) * RECORD_KILOBYTES / 1024:.1f}",
    )


def _known_seconds(job: Job) -> dict[str, float]:
    """Return the mean seconds of a run by row, from the committed records."""
    found: dict[str, list[float]] = {}
    for record in committed_records(job.experiment.name, job.tier):
        found.setdefault(record.spec.row, []).append(record.total_seconds)
    return {row: sum(values) / len(values) for row, values in found.items()}

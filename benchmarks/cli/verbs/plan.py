"""The verb `plan`: how many runs and hours, and how much disk, an experiment takes."""

from argparse import Namespace

from benchmarks.cli.verbs.experiments import (
    Job,
    committed_records,
    default_workers,
    jobs_of,
)
from benchmarks.execution.networks import networks_of, pipelines_of
from benchmarks.report.render import align
from benchmarks.runs.paths import store_root
from benchmarks.runs.store import RunStore

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
    jobs = jobs_of(options, offline=None)
    print(align([HEADER, *(_row(job, store) for job in jobs)]))
    print(
        "hours: of the missing runs, with one process per core, from the committed "
        "records of the tier; networks: how many have to be trained first; GPU hours: "
        f"of their training, at {GPU / 1e12:.0f} TFLOP/s; features GB: of all images "
        "of one network, in memory, and in the cache as far as that has room."
    )
    for job in jobs if options.experiments else ():
        for line in left_out_lines(job):
            print(line)
    return 0


def left_out_lines(job: Job) -> list[str]:
    """Return which rows an experiment leaves out, a line a reason."""
    left_out = job.experiment.left_out(job.tier)
    lines = [f"- {reason}: {'; '.join(rows)}" for reason, rows in left_out.items()]
    return [f"\n{job.label} leaves out", *lines] if lines else []


def _row(job: Job, store: RunStore) -> tuple[str, ...]:
    missing = [spec for spec in job.specs if store.get(spec) is None]
    known = _known_seconds(job)
    unknown = sum(spec.row not in known for spec in missing)
    hours = sum(known.get(spec.row, 0.0) for spec in missing) / 3600
    estimate = f"{hours / default_workers():.2f}"
    untrained = {n.digest for n in networks_of(missing) if not n.is_ready}
    forecasts = [p.forecast() for p in pipelines_of(missing)]
    known_work = [forecast for forecast in forecasts if forecast is not None]
    training = {f.network: f.operations for f in known_work if f.network in untrained}
    features = max((forecast.feature_bytes for forecast in known_work), default=0)
    return (
        job.experiment.name,
        job.tier,
        str(len(job.specs)),
        str(len(missing)),
        estimate + (f" + {unknown} unknown" if unknown else ""),
        str(len(untrained)),
        f"{sum(training.values()) / GPU / 3600:.1f}",
        f"{features / 1e9:.1f}",
        f"{len(job.specs) * RECORD_KILOBYTES / 1024:.1f}",
    )


def _known_seconds(job: Job) -> dict[str, float]:
    """Return the mean seconds of a run by row, from the committed records."""
    found: dict[str, list[float]] = {}
    for record in committed_records(job.experiment.name, job.tier):
        found.setdefault(record.spec.row, []).append(record.total_seconds)
    return {row: sum(values) / len(values) for row, values in found.items()}

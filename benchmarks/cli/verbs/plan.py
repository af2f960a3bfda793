"""The verb `plan`: how many runs and hours, and how much disk, an experiment takes."""

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

from benchmarks.cli.verbs.experiments import (
    Job,
    committed_records,
    default_workers,
    jobs_of,
)
from benchmarks.execution.networks import networks_of, pipelines_of
from benchmarks.execution.planned import (
    measured,
    planned_seconds,
    predicted,
    tasks_of,
)
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.problems.pretrained.weights import released_costs
from benchmarks.report.render import align
from benchmarks.runs.paths import store_root
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore
from metricopt.errors import ConfigError

HEADER = (
    *("experiment", "tier", "runs", "missing", "hours"),
    *("networks", "GPU hours", "features GB", "images GB", "records MB"),
)
RECORD_KILOBYTES = 6
GPU = 20e12
"""Floating-point operations of a GPU in a second, in training convolutions."""


def run(options: Namespace) -> int:
    """Print one line per experiment, and which rows named ones leave out.

    No data are needed for it.
    """
    store = RunStore(store_root())
    found, rows, unknown = _all_missing(options, store)
    if options.workers:
        times = [_times(missing, options.workers) for missing in found]
        heading = f"hours with {options.workers}", "work", "longest", "path"
        rows = [(*row, *more) for row, more in zip(rows, times, strict=True)]
        print(align([(*HEADER, *heading), *rows]))
    else:
        print(align([HEADER, *rows]))
    print(
        "hours: of the missing runs, with one process per core, from the committed "
        "records of the tier; rows without a record are unknown; networks: how many "
        "have to be trained first; GPU hours: "
        f"of their training, at {GPU / 1e12:.0f} TFLOP/s; features GB: of all images "
        "of one network, in memory, and in the cache as far as that has room; images "
        "GB: of decoded images, in the cache."
    )
    if options.workers:
        print(
            f"with {options.workers}: hours until the last of the missing runs ends, "
            "each on one of so many workers, after its network; work: hours of all, "
            "one after the other; longest: of one; path: of the longest chain that "
            "waits for each other, less than which no number of workers takes; hours "
            "after > leave out what is unknown. From the run store, else from "
            "the committed records of the tier."
        )
    kinds = _costs_by_kind()
    told = [_to_train(missing, kinds) for missing in found]
    for line in filter(None, [*told, *unknown]):
        print(line)
    for missing in found if options.experiments else ():
        for line in left_out_lines(missing.job):
            print(line)
    return 0


@dataclass(frozen=True)
class Missing:
    """What is missing of a job.

    Attributes:
        job: the job.
        made: records of its runs that are in the store.
        specs: runs without one.
        networks: those that these runs need, neither made here nor released.
    """

    job: Job
    made: Sequence[RunRecord]
    specs: Sequence[RunSpec]
    networks: Sequence[Prerequisite]

    @classmethod
    def of(cls, job: Job, store: RunStore) -> Self:
        """Return what is missing of a job.

        Raises:
            ConfigError: if a run needs a package that is not installed.
        """
        found = [(spec, store.get(spec)) for spec in job.specs]
        made = [record for _, record in found if record is not None]
        specs = [spec for spec, record in found if record is None]
        return cls(job, made, specs, [n for n in networks_of(specs) if not n.is_ready])


def _all_missing(
    options: Namespace, store: RunStore
) -> tuple[list[Missing], list[tuple[str, ...]], list[str]]:
    """Return what each job lacks, its line, and a message for every job left out.

    Raises:
        ConfigError: if an experiment that is named needs a package that is not there.
    """
    found, rows, unknown = [], [], []
    for job in jobs_of(options, offline=None):
        try:
            missing = Missing.of(job, store)
            rows.append(_row(missing))
            found.append(missing)
        except ConfigError as error:
            # Of all experiments, one may need a package that is not installed.
            if options.experiments:
                raise
            unknown.append(f"{job.label} is left out: {error}")
    return found, rows, unknown


Costs = Mapping[str, Sequence[tuple[float, int]]]
"""Seconds and bytes of released networks, by the name without the replicate."""


def _costs_by_kind() -> Costs:
    kinds: dict[str, list[tuple[float, int]]] = {}
    for name, cost in released_costs().items():
        kinds.setdefault(_kind(name), []).append(cost)
    return kinds


def _to_train(missing: Missing, kinds: Costs) -> str:
    """Return what the missing networks of a job take; empty if none is known.

    Networks that differ in the replicate alone take as long, and as much disk.
    """
    wanted = [_kind(network.name) for network in missing.networks]
    known = [kinds[kind] for kind in wanted if kind in kinds]
    if not known:
        return ""
    hours = sum(fmean(seconds for seconds, _ in costs) for costs in known) / 3600
    size = sum(fmean(size for _, size in costs) for costs in known) / 1e6
    others = len(wanted) - len(known)
    more = f"; {others} more of a kind that none is released of" if others else ""
    return (
        f"{missing.job.label}: training {len(known)} of its networks takes {hours:.1f} "
        f"hours, one after the other, and {size:.0f} MB, as those released took{more}"
    )


def _kind(name: str) -> str:
    """Return the name of a network without its replicate."""
    return re.sub(r"-r\d+$", "", name)


def left_out_lines(job: Job) -> list[str]:
    """Return which rows an experiment leaves out, a line a reason."""
    left_out = job.experiment.left_out(job.tier)
    lines = [f"- {reason}: {'; '.join(rows)}" for reason, rows in left_out.items()]
    return [f"\n{job.label} leaves out", *lines] if lines else []


def _times(missing: Missing, workers: int) -> tuple[str, ...]:
    """Return the hours of the missing runs with some workers, and what bounds them."""
    job, specs = missing.job, missing.specs
    # What this machine measured of a row says more of it than any other.
    rows = {record.spec.row for record in measured(missing.made)}
    records = committed_records(job.experiment.name, job.tier)
    records = [record for record in records if record.spec.row not in rows]
    seconds = planned_seconds(specs, [*missing.made, *records])
    trainings = _trainings(missing)
    found = predicted(tasks_of(specs, seconds, trainings), workers)
    known = len(seconds) == len(specs) and len(trainings) == len(missing.networks)
    hours = (found.wall, found.work, found.longest, found.path)
    return tuple(f"{'' if known else '>'}{part / 3600:.3g}" for part in hours)


def _trainings(missing: Missing) -> dict[str, float]:
    """Return the seconds in which a GPU trains the networks that are not there yet."""
    untrained = {network.digest for network in missing.networks}
    forecasts = (pipeline.forecast() for pipeline in pipelines_of(missing.specs))
    found = {f.network: f.operations / GPU for f in forecasts if f is not None}
    return {digest: seconds for digest, seconds in found.items() if digest in untrained}


def _row(missing: Missing) -> tuple[str, ...]:
    job, specs = missing.job, missing.specs
    seconds = planned_seconds(specs, committed_records(job.experiment.name, job.tier))
    unknown = len(specs) - len(seconds)
    hours = sum(seconds.values()) / 3600
    networks = {network.digest for network in missing.networks}
    trainings = _trainings(missing)
    gpu_hours = sum(trainings.values()) / 3600
    pipelines = pipelines_of(specs)
    forecasts = [pipeline.forecast() for pipeline in pipelines]
    known_work = [forecast for forecast in forecasts if forecast is not None]
    features = max((forecast.feature_bytes for forecast in known_work), default=0)
    images = {k: size for each in pipelines for k, size in each.decoded().items()}
    return (
        job.experiment.name,
        job.tier,
        str(len(job.specs)),
        str(len(specs)),
        _told(f"{hours / default_workers():.2f}", unknown, len(specs)),
        str(len(networks)),
        _told(f"{gpu_hours:.1f}", len(networks) - len(trainings), len(networks)),
        f"{features / 1e9:.1f}",
        f"{sum(images.values()) / 1e9:.1f}",
        f"{len(job.specs) * RECORD_KILOBYTES / 1024:.1f}",
    )


def _told(known: str, unknown: int, among: int) -> str:
    """Return the known total, with the number of parts that are unknown."""
    if not unknown:
        return known
    return "unknown" if unknown == among else f"{known} + {unknown} unknown"

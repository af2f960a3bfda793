"""What the verbs of the command line do; each returns an exit code."""

import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

from benchmarks import data_verbs
from benchmarks.experiment import Experiment, experiment_names, find_experiment
from benchmarks.paths import data_root, store_root
from benchmarks.records import (
    RunRecord,
    RunSpec,
    RunStore,
    gather,
    read_jsonl,
    sort_records,
)
from metricopt.errors import ConfigError, DataError

ROOT = Path(__file__).parent.parent


def experiments() -> dict[str, str]:
    """Return every experiment with its line of description."""
    return {name: find_experiment(name).about for name in experiment_names()}


def run(options: Namespace) -> int:
    """Run what is missing of some experiments, then report on them."""
    names = options.experiments
    for name in experiment_names() if names == ["all"] else names:
        _run_one(find_experiment(name), options)
    return 0


def _run_one(experiment: Experiment, options: Namespace) -> None:
    from benchmarks.networks import prepare
    from benchmarks.runner import run_all

    tier = options.tier or experiment.default_tier
    specs = experiment.specs(tier, options.replicates, options.offline)
    folder = _report_folder(experiment, tier, options)
    ensure_writable(folder)
    store = RunStore(store_root())
    if options.fresh:
        for spec in specs:
            store.path(spec).unlink(missing_ok=True)
    started = time.perf_counter()
    if options.workers is not None and options.workers < 1:
        raise ConfigError(f"workers must be at least 1, got {options.workers}")
    workers = options.workers or min(os.cpu_count() or 1, 16)
    prepare([spec for spec in specs if store.get(spec) is None])
    done = run_all(specs, store, workers=max(1, min(workers, len(specs))))
    print(
        f"{experiment.name} ({tier}): {len(done)} of {len(specs)} runs made in "
        f"{(time.perf_counter() - started) / 60:.1f} minutes, "
        f"{len(specs) - len(done)} were there"
    )
    records = _records(experiment, specs, tier)
    if not _is_reported(records, folder):
        from benchmarks.report import write_report

        write_report(experiment.layout(tier), records, folder)
    _print_page(folder)


def pretrain(options: Namespace) -> int:
    """Train the networks of some experiments here, released ones too; resumable."""
    from benchmarks.networks import networks_of, release_all, train_all

    specs = []
    for name in options.experiments:
        experiment = find_experiment(name)
        tier = options.tier or experiment.default_tier
        specs += experiment.specs(tier, options.replicates, False)
    thetas = networks_of(specs)
    train_all(thetas)
    if options.release:
        print(release_all(thetas))
    return 0


def report(options: Namespace) -> int:
    """Write the reports of some experiments from the runs there are."""
    from benchmarks.report import write_report

    for name in options.experiments or experiment_names():
        experiment = find_experiment(name)
        tier = options.tier or experiment.default_tier
        specs = experiment.specs(tier, options.replicates, True)
        folder = _report_folder(experiment, tier, options)
        ensure_writable(folder)
        records = _records(experiment, specs, tier)
        write_report(experiment.layout(tier), records, folder)
        print(f"wrote {folder}")
    return 0


def _records(
    experiment: Experiment, specs: list[RunSpec], tier: str
) -> list[RunRecord]:
    """Return the records there are, sorted; DataError if there is none."""
    records = gather(RunStore(store_root()), specs)
    if not records:
        raise DataError(f"no run of {experiment.name} ({tier}) is finished yet")
    return sort_records(records)


def _is_reported(records: list[RunRecord], folder: Path) -> bool:
    """Return whether a report was made of these very records."""
    lines = folder / "records.jsonl"
    text = "".join(f"{record.to_json()}\n" for record in records)
    return lines.is_file() and lines.read_text() == text


def _print_page(folder: Path) -> None:
    page = (folder / "table.md").read_text()
    print(page.split("## At equal queries")[0].split("## Figures")[0].rstrip())
    print(f"\nThe whole report, with figures and notes: {folder / 'table.md'}")


def verify(options: Namespace) -> int:
    """Rebuild committed reports and name every difference, README.md included."""
    from benchmarks.readme import readme_problems
    from benchmarks.verify import verify as find_problems

    root, problems, checked = Path(options.results), [], 0
    wanted = options.experiments or experiment_names()
    for name in wanted:
        experiment = find_experiment(name)
        for folder in sorted((root / name).glob("*")):
            if options.tier in (None, folder.name):
                problems += find_problems(experiment.layout(folder.name), folder)
                checked += 1
    if not checked:
        raise DataError(f"there is no report of {', '.join(wanted)} in {root}")
    if not options.experiments and root.resolve() == ROOT / "results":
        problems += readme_problems()
    for problem in problems:
        print(problem)
    print(f"{checked} reports rebuilt from their records: {len(problems)} problems")
    return 1 if problems else 0


def plan(options: Namespace) -> int:
    """Print runs, hours and disk of experiments before they are started."""
    from benchmarks.networks import networks_of
    from benchmarks.render import align
    from benchmarks.thetas import is_ready

    rows = []
    for name in options.experiments or experiment_names():
        experiment = find_experiment(name)
        tier = options.tier or experiment.default_tier
        specs = experiment.specs(tier, options.replicates, None)
        store = RunStore(store_root())
        missing = [spec for spec in specs if store.get(spec) is None]
        known = _known_seconds(Path(options.results) / name / tier)
        unknown = sum(spec.row not in known for spec in missing)
        hours = sum(known.get(spec.row, 0.0) for spec in missing) / 3600
        cores = min(os.cpu_count() or 1, 16)
        estimate = f"{hours / cores:.2f}" + (f" + {unknown} unknown" if unknown else "")
        disk = f"{len(specs) * 6 / 1024:.1f}"
        untrained = sum(not is_ready(theta) for theta in networks_of(missing))
        numbers = (str(len(specs)), str(len(missing)), estimate, str(untrained), disk)
        rows.append((name, tier, *numbers))
    header = ("experiment", "tier", "runs", "missing", "hours", "networks", "disk MB")
    print(align([header, *rows]))
    print(
        "Hours are those of the committed records of the tier, on as many processes as "
        "cores here; networks are those that have to be trained before."
    )
    return 0


def _known_seconds(folder: Path) -> dict[str, float]:
    """Return mean seconds of a run by row, from the committed records of a tier."""
    path = folder / "records.jsonl"
    found: dict[str, list[float]] = {}
    for record in read_jsonl(path) if path.is_file() else ():
        found.setdefault(record.spec.row, []).append(record.total_seconds)
    return {row: sum(values) / len(values) for row, values in found.items()}


def list_units(options: Namespace) -> int:
    """Print everything that has a name."""
    import baselines
    import metricopt.methods
    from baselines.losses import LOSSES
    from baselines.network_method import NETWORK_METHODS
    from benchmarks.datasets import source_names
    from metricopt.method import METHODS
    from metricopt.metrics import METRICS
    from metricopt.registry import import_units

    import_units(metricopt.methods)
    import_units(baselines)
    for kind, names in (
        ("experiments", experiment_names()),
        ("data sets", source_names()),
        ("methods (choose phi)", METHODS),
        ("network methods (train theta)", NETWORK_METHODS),
        ("losses", LOSSES),
        ("metrics", METRICS),
    ):
        print(f"{kind + ':':<31}{', '.join(names)}")
    return 0


def doctor(options: Namespace) -> int:
    """Print what this machine has, what is missing and how to get it."""
    from benchmarks.doctor import examine

    return examine(Path(options.results))


def data(options: Namespace) -> int:
    """Fetch, verify or show data sets."""
    action = getattr(data_verbs, options.action)
    return int(action(options.names, root=data_root()))


def test(options: Namespace) -> int:
    """Run the tests."""
    return subprocess.run([sys.executable, "-m", "pytest"], cwd=ROOT).returncode


def ensure_writable(folder: Path) -> None:
    """Make a results folder and check it, before work is lost.

    Raises:
        ConfigError: if it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"the results folder {folder} must be writable: {error.strerror}"
        ) from error


def _report_folder(experiment: Experiment, tier: str, options: Namespace) -> Path:
    return Path(options.results) / experiment.name / tier

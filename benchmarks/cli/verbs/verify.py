"""The verb `verify`: rebuild reports from their records and name every difference."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from benchmarks.cli.manifest import manifest_problems
from benchmarks.cli.pages import page_problems, prose
from benchmarks.cli.verbs.experiments import reference
from benchmarks.problems.pretrained.weights import released_problems
from benchmarks.report.bundle import LOCK, unpack
from benchmarks.report.layout import TableLayout
from benchmarks.report.verify import verify
from benchmarks.runs.paths import COMMITTED_RESULTS, ROOT, TIERS, store_root
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import experiment_names, find_experiment
from metricopt.errors import DataError


def run(options: Namespace) -> int:
    """Check reports and stored runs: all that is committed, unless options say less."""
    root = Path(options.results or COMMITTED_RESULTS).expanduser().absolute()
    if root.is_file():
        return _run_bundle(root, options)
    wanted = options.experiments or experiment_names()
    problems, checked = _problems(root, wanted, options.tier, reference)
    if root.resolve() == COMMITTED_RESULTS.resolve():
        project = COMMITTED_RESULTS.parent
        if not options.experiments:
            problems += page_problems(project) + released_problems(root / "weights")
        problems += manifest_problems(root, prose(project), options.experiments)
    problems += RunStore(store_root()).problems(wanted)
    return _tell(problems, checked)


def _run_bundle(path: Path, options: Namespace) -> int:
    """Check the reports in an archive, against nothing of this machine."""
    _say(f"{path.name}: unpacking it and comparing its files with their digests")
    with TemporaryDirectory() as scratch:
        bundle = unpack(path, Path(scratch).resolve())
        within = sorted(folder.name for folder in bundle.results.glob("*"))
        wanted = options.experiments or within
        found, checked = _problems(
            bundle.results, wanted, options.tier, bundle.reference
        )
        folder = f"{bundle.folder}/"
        problems = [text.replace(folder, "") for text in (*bundle.problems, *found)]
    if bundle.lock != (ROOT / LOCK).read_bytes():
        print(f"the bundle has another {LOCK}: other versions may round differently")
    return _tell(problems, checked)


def _problems(
    root: Path,
    wanted: Sequence[str],
    tier: str | None,
    beside: Callable[[Path], list[RunRecord] | None],
) -> tuple[list[str], int]:
    """Return what is wrong with reports, and how many there are.

    Args:
        root: the folder of the reports.
        wanted: names of experiments.
        tier: the one that is checked; None for all.
        beside: the committed records that a report was written beside.

    Raises:
        DataError: if there is no such report.
    """
    problems, checked = [], 0
    for name in wanted:
        layout = find_experiment(name).layout
        for folder in sorted((root / name).glob("*")):
            if not folder.is_dir() or folder.name not in TIERS:
                problems.append(f"{folder} is no report of a tier; remove it")
            elif tier in (None, folder.name):
                problems += _checked(layout(folder.name), folder, beside(folder))
                checked += 1
    if not checked:
        raise DataError(f"there is no report of {', '.join(wanted)} in {root}")
    return problems, checked


def _checked(
    layout: TableLayout, folder: Path, beside: Sequence[RunRecord] | None
) -> list[str]:
    """Return what is wrong with one report; say which, as large ones take a minute."""
    figures = len([*folder.glob("*.png")])
    _say(f"{folder.parent.name}, tier {folder.name}: tables and {figures} figures")
    started = monotonic()
    problems = verify(layout, folder, reference=beside)
    _say(f"  checked in {monotonic() - started:.0f} s, {len(problems)} problems")
    return problems


def _say(text: str) -> None:
    """Tell how far the work is, apart from what was found."""
    print(text, file=sys.stderr, flush=True)


def _tell(problems: Sequence[str], checked: int) -> int:
    for problem in problems:
        print(problem)
    print(f"{checked} reports rebuilt from their records: {len(problems)} problems")
    return 1 if problems else 0

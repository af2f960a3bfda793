"""The verb `verify`: rebuild reports from their records and name every difference."""

from argparse import Namespace
from pathlib import Path

from benchmarks.cli.manifest import manifest_problems
from benchmarks.cli.pages import page_problems, prose
from benchmarks.cli.verbs.experiments import reference
from benchmarks.problems.pretrained.weights import released_problems
from benchmarks.report.verify import verify
from benchmarks.runs.paths import COMMITTED_RESULTS, TIERS, store_root
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import experiment_names, find_experiment
from metricopt.errors import DataError


def run(options: Namespace) -> int:
    """Check reports and stored runs: all that is committed, unless options say less."""
    root = Path(options.results or COMMITTED_RESULTS).expanduser().absolute()
    wanted = options.experiments or experiment_names()
    problems, checked = [], 0
    for name in wanted:
        layout = find_experiment(name).layout
        for folder in sorted((root / name).glob("*")):
            if not folder.is_dir() or folder.name not in TIERS:
                problems.append(f"{folder} is no report of a tier; remove it")
            elif options.tier in (None, folder.name):
                beside = reference(folder)
                problems += verify(layout(folder.name), folder, reference=beside)
                checked += 1
    if not checked:
        raise DataError(f"there is no report of {', '.join(wanted)} in {root}")
    if root.resolve() == COMMITTED_RESULTS.resolve():
        project = COMMITTED_RESULTS.parent
        if not options.experiments:
            problems += page_problems(project) + released_problems(root / "weights")
        problems += manifest_problems(root, prose(project), options.experiments)
    problems += RunStore(store_root()).problems(wanted)
    for problem in problems:
        print(problem)
    print(f"{checked} reports rebuilt from their records: {len(problems)} problems")
    return 1 if problems else 0

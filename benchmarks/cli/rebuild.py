"""Write the committed reports anew from their own records, then the pages.

`python -m benchmarks.cli.rebuild` is for a new layout: no run is made, and no number
changes.
"""

import sys
from pathlib import Path

from benchmarks.cli import pages
from benchmarks.report.page import write_report
from benchmarks.runs.paths import COMMITTED_RESULTS
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import experiment_names, find_experiment
from metricopt.errors import MetricOptError


def rebuild(results: Path) -> None:
    """Write every report in a folder anew.

    Args:
        results: folder of the committed reports.

    Raises:
        DataError: if records are damaged or were altered.
    """
    for name in experiment_names():
        for path in sorted(results.glob(f"{name}/*/records.jsonl")):
            layout = find_experiment(name).layout(path.parent.name)
            write_report(layout, read_jsonl(path), path.parent)


def main() -> int:
    """Write reports and pages and return the exit code."""
    try:
        rebuild(COMMITTED_RESULTS)
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return pages.main()


if __name__ == "__main__":
    sys.exit(main())

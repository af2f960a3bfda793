"""The verb `data`: fetch, verify or show data sets; each action prints one table.

An action takes names of data sets, empty for all, and a data root, see
`benchmarks.runs.paths.data_root`. It returns the exit code, which is 1 if something is
wrong, and raises ConfigError for a name that no data set has.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data.contract import DataSource, VariantStatus
from benchmarks.data.read_source import ReadSource
from benchmarks.data.registry import all_names, find_any
from benchmarks.report.render import align
from metricopt.errors import DataError

HEADER = ("name", "variant", "rows", "state", "where", "digest")

Row = tuple[str, ...]


def run(options: Namespace) -> int:
    """Fetch, verify or show some data sets."""
    actions = {"fetch": fetch, "verify": verify, "status": status}
    return actions[options.action](options.names)


def fetch(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Download and check the official data sets.

    If one fails, the others are still fetched. The reasons are printed below the table.
    """
    rows, problems = [], []
    for source in _sources(names):
        official = source.variants[0]
        try:
            fresh = source.fetch(root)
            source.verify(root, variant=official)
            state, digest = "fetched" if fresh else None, "ok"
        except DataError as error:
            problems.append(str(error))
            state, digest = "failed", "-"
        first = source.status(root)[0]
        rows.append(_row(source, first, state=state, digest=digest))
    return _report(rows, problems)


def verify(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Parse all local files again without the cache and check their content.

    Named data sets must be there.
    """
    rows, problems = [], []
    for source in _sources(names):
        statuses = source.status(root)
        if names and all(each.state == "missing" for each in statuses):
            command = f"./reproduce.sh data fetch {source.name}"
            problems.append(f"{source.name} is not there; run `{command}`")
        for each in statuses:
            row, problem = _verified(source, each, root)
            rows.append(row)
            problems.extend(problem)
    return _report(rows, problems)


def status(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Print what is there without parsing or downloading."""
    sources = _sources(names)
    rows = [_row(source, each) for source in sources for each in source.status(root)]
    return _report(rows, [])


def _sources(names: Sequence[str]) -> list[DataSource | ReadSource]:
    names = names or all_names()
    return [find_any(name) for name in names]


def _verified(
    source: DataSource | ReadSource, status: VariantStatus, root: str | Path | None
) -> tuple[Row, list[str]]:
    if status.state == "missing":
        return _row(source, status), []
    try:
        source.verify(root, variant=status.variant.name)
    except DataError as error:
        return _row(source, status, digest="wrong"), [str(error)]
    return _row(source, status, digest="ok"), []


def _row(
    source: DataSource | ReadSource,
    status: VariantStatus,
    *,
    state: str | None = None,
    digest: str | None = None,
) -> Row:
    return (
        source.name,
        status.variant.name,
        f"{status.variant.shape[0]:,}",
        state or status.state,
        status.where,
        digest or status.digest,
    )


def _report(rows: Sequence[Row], problems: Sequence[str]) -> int:
    print(align([HEADER, *rows]))
    for problem in problems:
        print(f"error: {problem}")
    return 1 if problems else 0

"""The verbs `data fetch`, `data verify` and `data status`: each prints one table."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.datasets import find_source, source_names
from benchmarks.datasets.base import DataSource, VariantStatus
from benchmarks.render import align
from metricopt.errors import DataError

HEADER = ("name", "variant", "rows", "state", "where", "digest")

Row = tuple[str, ...]


def fetch(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Download and check the official data sets.

    One that fails does not keep the others from being fetched; its reason is printed
    below the table.

    Args:
        names: data sets; none means all.
        root: data root; see `benchmarks.paths.data_root`.

    Returns:
        Exit code: 0, or 1 if any failed.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
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
        status = source.status(root)[0]
        rows.append(_row(source, status, state=state, digest=digest))
    return _report(rows, problems)


def verify(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Parse every local file anew, whatever is cached, and check its content.

    Args:
        names: data sets; none means all. One that is named must be there.
        root: data root; see `benchmarks.paths.data_root`.

    Returns:
        Exit code: 0, or 1 if a file is wrong or a named data set is missing.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    rows, problems = [], []
    for source in _sources(names):
        statuses = source.status(root)
        if names and all(status.state == "missing" for status in statuses):
            problems.append(f"{source.name} is not there; {_fetch_command(source)}")
        for status in statuses:
            row, problem = _verified(source, status, root)
            rows.append(row)
            problems.extend(problem)
    return _report(rows, problems)


def status(names: Sequence[str] = (), *, root: str | Path | None = None) -> int:
    """Print what is there, without parsing or downloading.

    Args:
        names: data sets; none means all.
        root: data root; see `benchmarks.paths.data_root`.

    Returns:
        Exit code: 0.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    sources = _sources(names)
    rows = [_row(source, each) for source in sources for each in source.status(root)]
    return _report(rows, [])


def _sources(names: Sequence[str]) -> list[DataSource]:
    return [find_source(name) for name in names or source_names()]


def _fetch_command(source: DataSource) -> str:
    return f"run `./reproduce.sh data fetch {source.name}`"


def _verified(
    source: DataSource, status: VariantStatus, root: str | Path | None
) -> tuple[Row, list[str]]:
    if status.state == "missing":
        return _row(source, status), []
    try:
        source.verify(root, variant=status.variant.name)
    except DataError as error:
        return _row(source, status, digest="wrong"), [str(error)]
    return _row(source, status, digest="ok"), []


def _row(
    source: DataSource,
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


def _report(rows: Sequence[Row], problems: Iterable[str]) -> int:
    print(align([HEADER, *rows]))
    for problem in (found := list(problems)):
        print(f"error: {problem}")
    return 1 if found else 0

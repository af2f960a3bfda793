"""Whether records may share one table."""

from collections.abc import Sequence

from benchmarks.report.columns import Column
from benchmarks.report.layout import TableLayout
from benchmarks.runs.record import RunRecord
from metricopt.errors import DataError


def check_records(layout: TableLayout, records: Sequence[RunRecord]) -> None:
    """Check that these records may share one table.

    Raises:
        DataError: if there is none, they are of other experiments or several
            tiers, the layout lacks a place for one, a column shows a metric that
            its runs were not judged by, one column mixes data variants, or runs of
            one network were made on several, such as one released and one trained
            here.
    """
    if not records:
        raise DataError(f"expected records of {layout.experiment!r}, got none")
    for record in records:
        _check_place(layout, record)
    _check_one("tier", {record.spec.tier for record in records})
    for column in layout.columns:
        _check_metric(column, records)
        variants = data_variants(records, column)
        _check_one(f"data variant in column {column.name!r}", variants)
    for name, thetas in _network_digests(layout, records).items():
        _check_one(f"pre-trained network of {name}", thetas)


def _check_place(layout: TableLayout, record: RunRecord) -> None:
    spec = record.spec
    if spec.experiment != layout.experiment:
        raise DataError(
            f"expected records of {layout.experiment!r}, got {spec.experiment!r}"
        )
    for kind, name, known in (
        ("block", spec.block, [block.name for block in layout.blocks]),
        ("row", spec.row, layout.row_names),
        ("column", spec.column, [column.source for column in layout.columns]),
    ):
        if name not in known:
            raise DataError(
                f"a record has the {kind} {name!r}, which the layout of "
                f"{layout.experiment!r} lacks"
            )


def _check_metric(column: Column, records: Sequence[RunRecord]) -> None:
    specs = [r.spec for r in records if r.spec.column == column.source]
    judged = {unit.label for spec in specs for unit in spec.metrics}
    if judged and column.metric.label not in judged:
        raise DataError(
            f"column {column.name!r} shows {column.metric.label}, and its runs "
            f"were judged by {', '.join(sorted(judged))}"
        )


def _network_digests(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[str, set[str]]:
    """Return the digests of each network that was there before its runs."""
    found: dict[str, set[str]] = {}
    for record in records:
        if "theta" in record.data:
            if layout.network_of is None:
                raise DataError(
                    f"records of {layout.experiment!r} name networks, and its layout "
                    "does not say which runs share one"
                )
            name = layout.network_of(record.spec)
            found.setdefault(name, set()).add(record.data["theta"])
    return found


def _check_one(what: str, found: set[str]) -> None:
    if len(found) > 1:
        raise DataError(f"a table shows one {what}, got {', '.join(sorted(found))}")


def data_variants(records: Sequence[RunRecord], column: Column) -> set[str]:
    """Return the data variants named by the records of a column."""
    own = (record for record in records if record.spec.column == column.source)
    return {record.data["variant"] for record in own if "variant" in record.data}

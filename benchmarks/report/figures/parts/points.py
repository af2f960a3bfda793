"""Points that records keep among their notes, for the figures of value functions."""

from collections.abc import Sequence

from benchmarks.report.curves import of_row
from benchmarks.report.layout import TableLayout
from benchmarks.runs.record import RunRecord

METRICOPT_ROW = "metricopt"

Points = list[tuple[float, ...]]


def noted_points(records: Sequence[RunRecord], names: Sequence[str]) -> Points:
    """Return the complete tuples of list-valued notes of equal length."""
    points: Points = []
    for record in records:
        lists = [record.notes.get(name) for name in names]
        if all(isinstance(values, list) for values in lists):
            tuples = zip(*lists, strict=True)
            points += [item for item in tuples if None not in item]
    return points


def first_points(
    layout: TableLayout, records: Sequence[RunRecord], names: Sequence[str]
) -> Points:
    """Return the points of the first value function that has some.

    Taken are those of the first ablated row, or of the row `metricopt` if the layout
    has no ablation.
    """
    row = layout.ablation_rows[0] if layout.ablation_rows else METRICOPT_ROW
    clouds = (noted_points([record], names) for record in of_row(records, row))
    return next((cloud for cloud in clouds if cloud), [])

"""What the scripts of a table's page read: cells and query curves."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report import stats
from benchmarks.report.cells import Cell
from benchmarks.report.curves import Curve, of_place, of_row, query_curve
from benchmarks.runs.record import RunRecord
from benchmarks.website.reports import Report, place_of

if TYPE_CHECKING:
    from pandas import DataFrame

DIGITS = 6
"""Significant digits of the points of a curve."""


def cell_lines(table: "DataFrame") -> list[dict[str, Any]]:
    """Return the lines of `table.csv`, each as numbers and texts by name.

    Numbers are those that the file prints; a name without a value is None.
    """
    frame = table.astype(object)
    frame = frame.where(frame.notna(), None)
    return [
        {str(name): _printed(value) for name, value in line.items()}
        for line in frame.to_dict("records")
    ]


def json_lines(lines: Sequence[dict[str, Any]]) -> str:
    """Return the lines as JSON, one a line, without what has no value."""
    kept = ({k: v for k, v in line.items() if v not in (None, "")} for line in lines)
    return "".join(f"{compact(line)}\n" for line in kept)


def compact(content: Any) -> str:
    """Return content as JSON without spaces."""
    return json.dumps(
        content, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def page_data(report: Report, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the scripts of the page of a table read, with the lines of cells."""
    layout, cells = report.layout, report.cells_shown
    return {
        "blocks": {block.name: block.label for block in layout.blocks},
        "columns": {
            c.name: [c.heading, c.sign, c.metric.label, c.source]
            for c in layout.columns
        },
        "rows": {row.name: [row.label, row.sees, row.family] for row in layout.rows},
        "ours": layout.first_look.entry if layout.first_look else "metricopt-outputs",
        "name": report.name,
        "names": [*DRAWN, "own"],
        "cells": [
            [*(line[name] for name in DRAWN), _own(report, cell)]
            for line, cell in zip(lines, cells, strict=True)
        ],
        "curves": [*_curves(report, report.records), *_curves(report, report.own, 1)],
    }


DRAWN = (
    *("block", "row", "column", "n", "n_of", "mean", "std", "base_row", "cost_gain"),
    *("cost_gain_low", "cost_gain_high", "p_holm", "verdict", "paper", "paper_verdict"),
    "queries",
)
"""Names in `table.csv` of what a page draws or tells of a cell."""


def _printed(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _own(report: Report, cell: Cell) -> float | None:
    own = report.own_cells.get(place_of(cell))
    return None if own is None or own is cell else _printed(own.mean)


def _curves(
    report: Report, records: Sequence[RunRecord], whose: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the lines of the query figures, see `figures.query_curves`."""
    layout = report.layout
    if not (records and layout.query_budgets):
        return
    for block in layout.blocks:
        for column in layout.columns:
            reading = layout.reading(column)
            own = of_place(records, block, column)
            for entry in layout.compared_entries:
                line = query_curve(own, entry, reading)
                if line is not None:
                    place = (block.name, column.name, entry, whose)
                    yield dict(zip(CURVE, (*place, *_points(line)), strict=True))
            untouched = reading.all_finals(of_row(own, layout.untouched_row or ""))
            if untouched:
                flat = [[1], [_short(stats.mean(untouched))], [0]]
                place = (block.name, column.name, "", whose)
                yield dict(zip(CURVE, (*place, *flat), strict=True))


CURVE = ("block", "column", "row", "own", "x", "mean", "std")
"""Names of the parts of a curve; the untouched network has no row."""


def _points(line: Curve) -> list[list[float | None]]:
    parts = (line.x, line.mean, line.std)
    return [[_short(number) for number in part] for part in parts]


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{DIGITS}g}")

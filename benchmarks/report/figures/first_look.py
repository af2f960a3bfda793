"""A first look: one entry, drawn boldly, beside others, in a few columns."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import Curve, of_entry, of_place, of_row, query_curve
from benchmarks.report.figures.panels import make_panels, titled
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = "#0072B2"
OTHERS = ("0.35", "#B35806", "#7B3294", "#1B7837", "#C51B7D", "0.55", "black")
"""Dark enough to be read as names, too."""
FARTHEST = 500
"""Queries at which the axis ends: what comes later is on the page of the table."""
ROOM = 6.0
"""Factor by which the axis is longer, for the names at the ends of the lines."""


def first_look(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric over queries, with the name of each line at its end.

    None if the layout has no such figure, or it is not the first block.
    """
    chosen = layout.first_look
    if chosen is None or block != layout.blocks[0]:
        return None
    columns = [column for column in layout.columns if column.name in chosen.columns]
    entries = (layout.untouched_row or "", chosen.entry, *chosen.others)
    shown = {
        column: _of_all(
            of_place(records, block, column), entries, layout.reading(column)
        )
        for column in columns
    }
    panels = make_panels(column for column, own in shown.items() if own)
    if panels is None:
        return None
    figure, axes = panels
    for column, panel in axes.items():
        panel.set_title(f"{column.heading}: {chosen.columns[column.name]}")
        _draw(panel, layout, column, shown[column])
    replicates = max(len({r.spec.replicate for r in own}) for own in shown.values())
    return titled(
        figure,
        f"Test metric over evaluations of the metric\n({block.label}; "
        f"{replicates} replicates, band: one standard deviation)",
        "medium",
    )


def _draw(
    panel: "Axes", layout: TableLayout, column: Column, records: list[RunRecord]
) -> None:
    chosen, reading = layout.first_look, layout.reading(column)
    assert chosen is not None
    untouched = stats.mean(
        reading.all_finals(of_row(records, layout.untouched_row or ""))
    )
    ends = []
    if untouched is not None:
        panel.axhline(untouched, color="0.8", linewidth=0.8)
        ends.append((untouched, "untouched", "0.6"))
    for place, entry in enumerate((*chosen.others, chosen.entry)):
        line = _until(query_curve(records, entry, reading, "test"), FARTHEST)
        if line is not None:
            ours = entry == chosen.entry
            colour = COLOUR if ours else OTHERS[place % len(OTHERS)]
            width = 2.5 if ours else 1.2
            panel.plot(line.x, line.mean, color=colour, linewidth=width)
            if ours:
                panel.fill_between(line.x, *line.band, color=colour, alpha=0.15, lw=0)
            ends.append((line.mean[-1], layout.entries[entry], colour))
    panel.set_xscale("log")
    panel.set_xlim(1, FARTHEST * ROOM)
    panel.set_xlabel("evaluations of the metric")
    panel.set_ylabel(column.axis_label)
    _write(panel, ends)


def _write(panel: "Axes", ends: list[tuple[float, str, str]]) -> None:
    """Write names at the ends of lines, apart from each other."""
    low, high = panel.get_ylim()
    least = (high - low) / 14
    places, at = list[float](), -float("inf")
    for value, _, _ in sorted(ends):
        at = max(value, at + least)
        places.append(at)
    # None may reach into the title: the last ones move down, and push the others.
    at = high + least / 2
    for place in reversed(range(len(places))):
        at = places[place] = min(places[place], at - least)
    for at, (_, name, colour) in zip(places, sorted(ends), strict=True):
        panel.text(
            FARTHEST * 1.15, at, name, color=colour, fontsize="small", va="center"
        )


def _until(line: Curve | None, queries: int) -> Curve | None:
    """Return a curve until so many queries, held there; None if it starts later.

    What needs no query at all starts at 1, since the axis is logarithmic.
    """
    if line is None or line.x[0] > queries:
        return None
    last = bisect_right(line.x, queries)
    keep = range(min(bisect_right(line.x, 0), last - 1), last)
    kept = line.at([*keep, last - 1])
    x = (*(max(1.0, each) for each in kept.x[:-1]), float(queries))
    return Curve(x, kept.mean, kept.std)


def _of_all(
    records: Sequence[RunRecord], entries: Sequence[str], reading: Reading
) -> list[RunRecord]:
    """Return the records of the replicates that all entries have which have any."""
    found = [
        {record.spec.replicate for record in of_entry(records, entry, reading)}
        for entry in entries
    ]
    known = [replicates for replicates in found if replicates]
    common = set.intersection(*known) if known else set()
    return [record for record in records if record.spec.replicate in common]

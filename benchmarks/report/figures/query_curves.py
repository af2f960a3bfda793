"""What rows reach along fine-tuning and over metric queries, and queries to a goal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from benchmarks.report import stats
from benchmarks.report.columns import Column, Reading, Split
from benchmarks.report.curves import (
    Curve,
    curve,
    of_entry,
    of_row,
    query_curve,
    without_budget,
)
from benchmarks.report.figures.panels import (
    Style,
    draw_band,
    draw_end,
    draw_mark,
    draw_panels,
    finish,
    make_single_panel,
    row_styles,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.sections.queries import Goal, goals
from benchmarks.rows.contract import SEES
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_BANDS = 6
"""Lines of a panel that have bands."""
Key = TypeVar("Key")


class Shown(NamedTuple, Generic[Key]):
    """Lines of a column, by label or by label and split, and the untouched network."""

    lines: dict[Key, Curve]
    untouched: float | None


def cost_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric along fine-tuning: mean and one deviation.

    One line per entry whose trace has more than one step. If the layout singles rows
    out, only they are drawn, with loss-only fine-tuning. Many lines have the deviation
    of their ends alone, side by side, as bands would hide each other. A grey line is
    the untouched network, if the layout names its row.
    """
    styles = row_styles(layout)
    chosen = (layout.loss_only_row, *(layout.cloud_rows or layout.entries))

    def read(own: list[RunRecord], reading: Reading) -> Shown[str] | None:
        plain = without_budget(own, reading)
        lines = {
            label: curve(of_entry(plain, entry, reading), reading, axis="step")
            for entry, label in layout.entries.items()
            if entry in chosen
        }
        known = {label: line for label, line in lines.items() if line}
        return Shown(known, _untouched(layout, own, reading)) if known else None

    def draw(panel: "Axes", column: Column, shown: Shown[str]) -> None:
        _draw_untouched(panel, shown.untouched)
        _draw_lines(panel, shown.lines, styles)
        panel.set_xlabel("fine-tuning steps (metric on test)")
        panel.set_ylabel(column.axis_label)

    return draw_panels(
        layout,
        records,
        block,
        read=read,
        draw=draw,
        what="along fine-tuning\nbands or bars: {spread}",
    )


def _draw_lines(
    panel: "Axes", lines: dict[str, Curve], styles: dict[str, Style]
) -> None:
    for place, (label, line) in enumerate(lines.items(), start=1):
        if len(lines) > MOST_BANDS:
            draw_end(panel, line, place, label=label, style=styles[label])
        else:
            draw_band(panel, line, label=label, style=styles[label])
    # Bars stand beyond the last step, where no step is to be read.
    last = max(line.x[-1] for line in lines.values())
    panel.set_xticks([tick for tick in panel.get_xticks() if 0 <= tick <= last])


Line = tuple[str, Split]
SPLITS: tuple[Split, Split] = ("test", "observe")
OBSERVE: dict[str, Any] = {"lw": 0.7, "mfc": "none"}
"""Thin lines and hollow marks: what was reached on observe."""


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw test (thick, with spread) and observe (thin) metric over queries.

    One pair of lines per entry that spends queries, or of points if only the end of an
    entry is known. The axis of queries is logarithmic. A grey line is the untouched
    network, if the layout names its row. None if the layout compares no budgets.
    """
    if not layout.query_budgets:
        return None
    styles = row_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> Shown[Line] | None:
        lines = {
            (label, split): _curve(own, entry, reading, split)
            for entry, label in layout.compared_entries.items()
            for split in SPLITS
        }
        known = {key: line for key, line in lines.items() if line}
        return Shown(known, _untouched(layout, own, reading)) if known else None

    def draw(panel: "Axes", column: Column, shown: Shown[Line]) -> None:
        _draw_references(panel, shown)
        for (label, split), line in shown.lines.items():
            if split == "observe":
                _draw_thin(panel, line, styles[label])
            elif len(line.x) == 1:
                end = (line.x, line.mean, line.std)
                draw_mark(panel, end, label=label, style=styles[label])
            else:
                draw_band(panel, line, label=label, style=styles[label])
        panel.set_xscale("log")
        panel.set_xlabel("metric queries (thick: test, thin: observe)")
        panel.set_ylabel(column.axis_label)

    return draw_panels(
        layout,
        records,
        block,
        read=read,
        draw=draw,
        what="over metric queries\nbands and bars: {spread}",
    )


def _untouched(
    layout: TableLayout, own: Sequence[RunRecord], reading: Reading
) -> float | None:
    """Return the mean of the untouched network on test, if it has a row."""
    return stats.mean(reading.all_finals(of_row(own, layout.untouched_row or "")))


def _draw_untouched(panel: "Axes", value: float | None) -> None:
    if value is not None:
        panel.axhline(value, color="0.6", lw=0.8, label="untouched")


def _draw_references(panel: "Axes", shown: Shown[Line]) -> None:
    """Draw the untouched network, and explain in the legend what is thin and hollow."""
    _draw_untouched(panel, shown.untouched)
    if any(split == "observe" for _, split in shown.lines):
        name = "observe split (thin, hollow)"
        panel.plot([], [], color="0.4", marker="o", label=name, **OBSERVE)


def _draw_thin(panel: "Axes", line: Curve, style: Style) -> None:
    """Draw a thin line, or a hollow mark for a single point."""
    colour, dash, mark = style
    alone = mark if len(line.x) == 1 else ""
    form: dict[str, Any] = {"linestyle": dash, "marker": alone}
    panel.plot(line.x, line.mean, color=colour, **form, **OBSERVE)


def _curve(
    runs: Sequence[RunRecord], entry: str, reading: Reading, split: Split
) -> Curve | None:
    """Return a curve without its point at 0 queries, which no log axis can show."""
    line = query_curve(runs, entry, reading, split)
    if line is None:
        return None
    keep = [index for index, x in enumerate(line.x) if x > 0]
    return line.at(keep) if keep else None


ENTRY_INCHES, FRAME_INCHES = 0.09, 1.8
"""Height of an entry within a column, and of what is above and below all columns."""
BAND = 0.8
"""Share of a column's height that its marks are spread over."""


def queries_to_reach(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw for each column with a goal the queries that entries needed, a mark each.

    Entries stand in the order of the legend. Hollow marks are entries that never got
    there, at what they count with: all queries they made, or those of CMA-ES if these
    are more. The axis of queries is logarithmic; 0 stands at 1.
    """
    found = [goal for goal in goals(layout, records) if goal.block == block]
    if not found:
        return None
    figure, panel = make_single_panel()
    _draw_columns(panel, found)
    known = {entry for goal in found for entry in goal.efforts}
    entries = [item for item in layout.compared_entries.items() if item[0] in known]
    words, styles = ("", *SEES), row_styles(layout)
    entries.sort(key=lambda item: words.index(layout.sees[item[1]]))
    for place, (entry, label) in enumerate(entries):
        shift = BAND * ((place + 0.5) / len(entries) - 0.5)
        _draw_entry(panel, found, entry, label=label, shift=shift, style=styles[label])
    high = FRAME_INCHES + ENTRY_INCHES * len(found) * (len(entries) + 1)
    figure.set_figheight(max(figure.get_figheight(), high))
    what = "metric queries for the test value\nof CMA-ES at 500, or at all it made"
    return finish(figure, layout, block, what)


def _draw_columns(panel: "Axes", found: Sequence[Goal]) -> None:
    """Draw a band per column with the queries of CMA-ES, and explain hollow marks."""
    for place, goal in enumerate(found):
        ends = (place - 0.5, place + 0.5)
        label = "where CMA-ES is taken"
        panel.plot([goal.queries] * 2, ends, color="0.6", lw=0.8, label=label)
        panel.axhline(place + 0.5, color="0.85", lw=0.5)
    hollow: dict[str, Any] = {"ls": "none", "marker": "o", "mfc": "none"}
    panel.plot([], [], color="0.4", label="never reached (hollow)", **hollow)
    panel.set_xscale("log")
    panel.set_xlabel("metric queries, meta-training included (0 drawn at 1)")
    panel.set_yticks(range(len(found)), [goal.column.heading for goal in found])
    panel.set_ylim(len(found) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")


def _draw_entry(
    panel: "Axes",
    found: Sequence[Goal],
    entry: str,
    *,
    label: str,
    shift: float,
    style: Style,
) -> None:
    """Draw the marks of an entry, each a little off the middle of its column."""
    colour, _, marker = style
    own = [(n + shift, goal) for n, goal in enumerate(found) if entry in goal.efforts]
    points = [(goal.counted(entry), y) for y, goal in own]
    for reached, face in ((True, colour), (False, "none")):
        drawn = [
            point
            for point, (_, goal) in zip(points, own, strict=True)
            if (goal.efforts[entry].needed is not None) == reached
        ]
        x, y = [x for x, _ in drawn], [y for _, y in drawn]
        name = label if reached else ""
        panel.plot(x, y, ls="none", marker=marker, color=colour, mfc=face, label=name)

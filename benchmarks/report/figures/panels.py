"""How every figure looks: looks of entries, panels, lines, PNG bytes."""

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, count
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import Curve, of_place
from benchmarks.report.layout import Block, TableLayout
from benchmarks.rows.contract import SEES
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's palette: told apart with every common colour vision deficiency.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
FORMS = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Dash and marker, in the order in which entries get them."""
FIXED_ROWS = (
    "metricopt",
    "cma-es",
    "guided-cma",
    "metricopt-literal",
    "random-search",
    "metricopt-adam",
    "loss-only-dense",
    "loss-only",
    "metricopt-outputs",
)
"""Rows that look the same in the figures of every experiment; append, never insert."""
LATER_ROWS, FIRST_LATER = ("metricopt-mirror",), 68
"""Rows that joined tables with figures, and the number of the first one's look. No
other row reaches it, so none changes its look. Append, never insert."""

Dash = str | tuple[int, tuple[int, ...]]
Marker = str | tuple[int, int, int]
Style = tuple[str, Dash, Marker]
"""Colour, dash and marker of an entry."""


def row_styles(layout: TableLayout) -> dict[str, Style]:
    """Return the look of each row and entry by label, the same in every figure."""
    named = {label: name for name, label in layout.entries.items()}
    named |= {row.label: row.name for row in layout.rows}
    numbers = dict(zip(FIXED_ROWS, count(), strict=False))
    numbers |= dict(zip(LATER_ROWS, count(FIRST_LATER), strict=False))
    fixed = {name: look(numbers[name]) for name in named.values() if name in numbers}
    taken = set(fixed.values())
    free = (found for found in map(look, count()) if found not in taken)
    return {label: fixed.get(name) or next(free) for label, name in named.items()}


def look(number: int) -> Style:
    """Return the look of that number, from 0; no two are the same."""
    form, colour = divmod(number, len(COLOURS))
    if form < len(FORMS):
        return COLOURS[colour], *FORMS[form]
    # A dash of its own length and a star with its own number of points.
    return COLOURS[colour], (0, (form, 2, 1, 2)), (form, 1, 0)


DPI = 110
PANEL_INCHES = (4.4, 3.3)
SINGLE_INCHES = (8.8, 5.0)
PANELS_PER_LINE = 3
ALL_BLOCKS = Block("all", "all blocks")
"""Stands in the title of a figure of all blocks."""
SEEN_THROUGH = 0.35
"""How opaque the inside of a point is."""
END_GAP = 0.02
"""Room between bars beyond the ends of lines, as a share of the lines' width."""
NARROW = {1: 62, 2: 78}
"""Characters in a line of the title above so many panels side by side."""
SIDE_WIDTH = 22
"""Characters in a line beside a panel of 1.7 inches."""
HEADINGS = {word: f"sees {word}" for word in SEES}
"""Headings of a legend, by what the entries below them see; in the order of `SEES`."""

Content = TypeVar("Content")
"""What a figure shows of one column; empty or None for no panel."""


def plain_style() -> AbstractContextManager[None]:
    """Return a context in which no setting of the user changes a figure."""
    import matplotlib.style

    return matplotlib.style.context("default")


def make_panels(
    columns: Iterable[Column],
) -> "tuple[Figure, dict[Column, Axes]] | None":
    """Return a figure with one empty panel per column, None without a column."""
    columns = list(columns)
    if not columns:
        return None
    from matplotlib.figure import Figure

    high = -(-len(columns) // PANELS_PER_LINE)
    wide = -(-len(columns) // high)
    size = (PANEL_INCHES[0] * wide, PANEL_INCHES[1] * high)
    # Title and legend take as much room beside one panel as beside several.
    size = SINGLE_INCHES if len(columns) == 1 else size
    figure = Figure(figsize=size, layout="constrained")
    axes = {}
    for place, column in enumerate(columns, start=1):
        panel = figure.add_subplot(high, wide, place)
        panel.set_title(column.heading, fontsize="medium")
        _dress(panel)
        axes[column] = panel
    return figure, axes


def make_single_panel() -> "tuple[Figure, Axes]":
    """Return a figure with one empty panel, which belongs to no column."""
    figure, (panel,) = make_free_panels(1)
    return figure, panel


def make_free_panels(count: int) -> "tuple[Figure, list[Axes]]":
    """Return a figure with empty panels beside each other, which belong to no column.

    They take the width of one panel with its legend, and more for each further one.
    """
    from matplotlib.figure import Figure

    wide, high = SINGLE_INCHES
    size = (wide + PANEL_INCHES[0] * (count - 1), high)
    figure = Figure(figsize=size, layout="constrained")
    panels = [figure.add_subplot(1, count, place) for place in range(1, count + 1)]
    for panel in panels:
        _dress(panel)
    return figure, panels


def make_panel_rows(
    rows: int, columns: int, inches: tuple[float, float]
) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure with rows of empty panels, each of a size in inches."""
    from matplotlib.figure import Figure

    wide, high = inches
    figure = Figure(figsize=(wide * columns, high * rows), layout="constrained")
    numbers = range(1, rows * columns + 1)
    panels = [figure.add_subplot(rows, columns, number) for number in numbers]
    for panel in panels:
        _dress(panel)
    return figure, [panels[at : at + columns] for at in range(0, len(panels), columns)]


def draw_panels(
    layout: TableLayout,
    records: Sequence[RunRecord],
    block: Block,
    *,
    read: Callable[[list[RunRecord], Reading], Content | None],
    draw: "Callable[[Axes, Column, Content], None]",
    what: str,
) -> "Figure | None":
    """Draw one panel per column of a block, with what is read from its records.

    Args:
        layout: the experiment.
        records: all its records.
        block: which part.
        read: returns what a column shows, given its finished records.
        draw: draws that into a panel.
        what: ends the title; `{spread}` in it becomes what deviations are over.
    """
    found = {
        column: read(of_place(records, block, column), layout.reading(column))
        for column in layout.columns
    }
    shown = {column: content for column, content in found.items() if content}
    panels = make_panels(shown)
    if panels is None:
        return None
    figure, axes = panels
    for column, panel in axes.items():
        draw(panel, column, shown[column])
    spread = spread_over(layout, records, block)
    return finish(figure, layout, block, what.format(spread=spread))


def spread_over(layout: TableLayout, records: Sequence[RunRecord], block: Block) -> str:
    """Return what deviations in the figures of a block are."""
    return f"one sample standard deviation over {units(layout, records, block)}"


def units(layout: TableLayout, records: Sequence[RunRecord], block: Block) -> str:
    """Return what there is one value of, in the runs of a block."""
    readings = {column.source: layout.reading(column) for column in layout.columns}
    own = (record.spec for record in records if record.spec.block == block.name)
    found = {f"{readings[s.column].unit(s)}s" for s in own if s.column in readings}
    return " or ".join(sorted(found))


def _dress(panel: "Axes") -> None:
    panel.locator_params(axis="x", nbins=5)
    panel.grid(alpha=0.25, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)


def draw_band(panel: "Axes", line: Curve, *, label: str, style: Style) -> None:
    """Draw a mean with one standard deviation to either side."""
    colour, dash, _ = style
    panel.plot(line.x, line.mean, color=colour, linestyle=dash, label=label)
    panel.fill_between(line.x, *line.band, color=colour, alpha=0.15, linewidth=0)


def draw_end(
    panel: "Axes", line: Curve, place: int, *, label: str, style: Style
) -> None:
    """Draw a mean, and beyond its end, at one of many places, one deviation there."""
    colour, dash, mark = style
    form: dict[str, Any] = {"marker": mark, "markevery": [len(line.x) - 1]}
    panel.plot(line.x, line.mean, color=colour, ls=dash, ms=5, label=label, **form)
    beyond = line.x[-1] + END_GAP * place * (line.x[-1] - line.x[0])
    end = (beyond, line.mean[-1], line.std[-1])
    draw_mark(panel, end, label="", style=style)


def draw_mark(
    panel: "Axes", point: tuple[Any, Any, Any], *, label: str, style: Style
) -> None:
    """Draw points (x, mean, deviation) with one deviation to either side."""
    colour, _, marker = style
    # A marker may be a tuple, which `fmt` does not take.
    bars: dict[str, Any] = {"linestyle": "none", "marker": marker, "capsize": 2}
    panel.errorbar(*point, color=colour, label=label, **bars)


def draw_point(panel: "Axes", x: float, y: float, *, label: str, style: Style) -> None:
    """Draw one point, through which those below it are seen."""
    colour, _, marker = style
    panel.plot(
        [x],
        [y],
        linestyle="none",
        marker=marker,
        markersize=8,
        markerfacecolor=(colour, SEEN_THROUGH),
        markeredgecolor=colour,
        markeredgewidth=1.5,
        label=label,
    )


def name_line(panel: "Axes", label: str) -> None:
    """Write the label of a line of small panels beside the first, in several lines."""
    panel.set_ylabel(textwrap.fill(label, SIDE_WIDTH), fontsize="small")


def finish(figure: "Figure", layout: TableLayout, block: Block, what: str) -> "Figure":
    """Add the title and, beside the panels, one legend for all of them.

    Entries stand below what they see, where the layout tells it.
    """
    # Few panels leave less room before the legend.
    grid = figure.axes[0].get_gridspec()
    width = NARROW.get(1 if grid is None else grid.ncols)
    gap = "\n" if width else " "
    title = f"{layout.title}{gap}({block.label}): {what}"
    if width:
        lines = (textwrap.wrap(line, width) for line in title.splitlines())
        title = "\n".join(chain.from_iterable(lines))
    figure.suptitle(title, x=0.01, horizontalalignment="left")
    entries = _legend_entries(figure, layout)
    if entries:
        labels, handles = zip(*entries, strict=True)
        legend = figure.legend(
            handles=handles,
            labels=labels,
            loc="outside right upper",
            fontsize="small",
            frameon=False,
        )
        for text in legend.get_texts():
            if text.get_text() in HEADINGS.values():
                text.set_fontweight("bold")
    return figure


def _legend_entries(
    figure: "Figure", layout: TableLayout
) -> "list[tuple[str, Artist]]":
    """Return each label once with its handle: entries under a heading by what they see.

    Labels of which that is not told stand first, without a heading.
    """
    from matplotlib.lines import Line2D

    seen = layout.sees
    groups: dict[str, dict[str, Artist]] = {word: {} for word in ("", *HEADINGS)}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            groups[seen.get(str(label), "")].setdefault(str(label), handle)
    entries: list[tuple[str, Artist]] = []
    for word, own in groups.items():
        if word and own:
            entries.append((HEADINGS[word], Line2D([], [], linestyle="none")))
        entries += own.items()
    return entries


def titled(figure: "Figure", title: str, size: str = "small") -> "Figure":
    """Write a title of several lines above a figure, from its left edge on."""
    figure.suptitle(title, fontsize=size, x=0.01, ha="left")
    return figure


def to_png(figure: "Figure") -> bytes:
    """Return a figure as PNG bytes: the same figure, the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    # No version of the software among the metadata: it is no part of the result.
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()

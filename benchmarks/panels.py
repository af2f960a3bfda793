"""Panels, lines and PNG bytes: how every figure looks."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import cycle
from typing import TYPE_CHECKING, TypeVar

from benchmarks.curves import Curve, of_place
from benchmarks.layout import WORST, Block, Column, TableLayout
from benchmarks.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
PANEL_INCHES = (4.4, 3.3)
SINGLE_INCHES = (8.8, 5.0)
PANELS_PER_LINE = 3
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
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
FIXED_ARMS = (
    "metricopt",
    "cma-es",
    "guided-cma",
    "metricopt-literal",
    "random-search",
    "metricopt-adam",
    "loss-only-dense",
    "loss-only",
)
FIXED_COLOURS = dict(zip(FIXED_ARMS, COLOURS, strict=True))
"""Colour of an arm in the figures of every experiment."""

Content = TypeVar("Content")
"""What a figure shows of one column; empty or None for no panel."""
Style = tuple[str, str, str]
"""Colour, dash and marker of an arm."""


def arm_styles(layout: TableLayout) -> dict[str, Style]:
    """Return the look of each row and arm by label, the same in every figure.

    Arms of every experiment have colours of their own, in solid lines and circles.
    """
    named = {label: name for name, label in layout.arms.items()}
    named |= {row.label: row.name for row in layout.rows}
    looks = [
        (colour, dash, marker)
        for dash, marker in zip(DASHES, MARKERS, strict=True)
        for colour in COLOURS
    ]
    solid = dict(zip(COLOURS, looks, strict=False))
    fixed = {
        name: solid[FIXED_COLOURS[name]]
        for name in named.values()
        if name in FIXED_COLOURS
    }
    free = cycle(look for look in looks if look not in fixed.values())
    return {label: fixed.get(name) or next(free) for label, name in named.items()}


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
    from matplotlib.figure import Figure

    figure = Figure(figsize=SINGLE_INCHES, layout="constrained")
    panel = figure.add_subplot()
    _dress(panel)
    return figure, panel


def draw_panels(
    layout: TableLayout,
    records: Sequence[RunRecord],
    block: Block,
    *,
    read: Callable[[list[RunRecord]], Content],
    draw: "Callable[[Axes, Column, Content], None]",
    what: str,
) -> "Figure | None":
    """Draw one panel per column of a block, with what is read from its records."""
    found = {c: read(of_place(records, block, c)) for c in layout.columns}
    panels = make_panels(column for column, content in found.items() if content)
    if panels is None:
        return None
    figure, axes = panels
    for column, panel in axes.items():
        draw(panel, column, found[column])
    return finish(figure, layout, block, what)


def _dress(panel: "Axes") -> None:
    panel.locator_params(axis="x", nbins=5)
    panel.grid(alpha=0.25, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)


def draw_band(panel: "Axes", line: Curve, *, label: str, style: Style) -> None:
    """Draw a mean with one standard deviation to either side."""
    colour, dash, _ = style
    panel.plot(line.x, line.mean, color=colour, linestyle=dash, label=label)
    low = [centre - spread for centre, spread in zip(line.mean, line.std, strict=True)]
    high = [centre + spread for centre, spread in zip(line.mean, line.std, strict=True)]
    panel.fill_between(line.x, low, high, color=colour, alpha=0.15, linewidth=0)


def metric_label(column: Column) -> str:
    """Return an axis label: metric, unit and direction."""
    better = "higher" if column.higher_is_better else "lower"
    return f"{column.label}\n({column.unit}, {better} is better)"


def cost_label(column: Column) -> str:
    """Return an axis label of the metric as a cost, of which less is better."""
    if not column.higher_is_better:
        return column.label
    return f"{WORST[column.unit]:.0f} - {column.label}"


def finish(figure: "Figure", layout: TableLayout, block: Block, what: str) -> "Figure":
    """Add the title and, beside the panels, one legend for all of them."""
    # Few panels leave less room before the legend.
    gap = "\n" if figure.axes[0].get_gridspec().ncols <= 2 else " "
    title = f"{layout.title}{gap}({block.label}): {what}"
    figure.suptitle(title, x=0.01, horizontalalignment="left")
    handles: dict[str, Artist] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    if handles:
        figure.legend(
            handles=list(handles.values()),
            labels=list(handles),
            loc="outside right upper",
            fontsize="small",
            frameon=False,
        )
    return figure


def to_png(figure: "Figure") -> bytes:
    """Return a figure as PNG bytes: the same figure, the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    # No version of the software among the metadata: it is no part of the result.
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()

"""Training loss and test metric on planes through solutions, and on the way to them."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, of_place, of_row
from benchmarks.report.figures.panels import (
    PANEL_INCHES,
    Style,
    draw_band,
    finish,
    make_panel_rows,
    row_styles,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.rows.contract import Row
from benchmarks.runs.notes import SURFACE
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS = 12
"""Contours of a panel."""
SHOWN = 0.75
"""Share of the grid that contours tell apart, the best: corners are far worse."""
FAR, GONE = 0.1, 0.9
"""Share of a displacement's length off the plane above which a marker is hollow, and
above which there is none: it would lie on the untouched network."""
INCHES = (PANEL_INCHES[0] + 0.6, PANEL_INCHES[1] + 0.3)
Drawn = tuple[Column, Row, list[RunRecord]]
"""A plane: where it is, which one it is, and its records by replicate."""


def surfaces(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw training loss and test metric on every plane of the first replicate.

    None if no run notes a plane. Reads the note `SURFACE`; see
    `benchmarks.arms.surfaces`.

    Source: Huang et al., CVPR 2021, Fig. S2. Differs: contours from above.
    """
    planes = list(_planes(layout, records, block))
    if not planes:
        return None
    figure, panels = make_panel_rows(len(planes), 2, INCHES)
    for (column, row, own), line in zip(planes, panels, strict=True):
        surface = own[0].notes[SURFACE]
        share = f"{100 * surface['share']:.0f} % of squared displacement on it"
        for panel, kind in zip(line, ("loss", "metric"), strict=True):
            lower = kind == "loss" or not column.higher_is_better
            _draw_levels(panel, surface, kind, is_small_good=lower)
            _draw_solutions(panel, layout, surface)
            panel.set_title(f"{_place(column, row)}\n{_words(column, kind)}", **SMALL)
            panel.set_xlabel(share, fontsize="small")
    what = (
        "the first replicate; dark is good\n"
        f"hollow: {100 * FAR:.0f} % or more of the way is off the plane, so the shade "
        f"is not that of the solution; above {100 * GONE:.0f} %: not drawn"
    )
    return finish(figure, layout, block, what)


def paths_to_solutions(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw loss and metric on straight paths from the untouched network to solutions.

    None if no run notes a plane.
    """
    planes = list(_planes(layout, records, block))
    if not planes:
        return None
    figure, panels = make_panel_rows(len(planes), 2, INCHES)
    styles, rows = row_styles(layout), {row.name: row for row in layout.rows}
    for (column, row, own), line in zip(planes, panels, strict=True):
        noted = [record.notes[SURFACE] for record in own]
        for panel, kind in zip(line, ("loss", "metric"), strict=True):
            for name in _solutions(noted[0]):
                label = rows[name].label
                found = _path(noted, name, kind)
                draw_band(panel, found, label=label, style=styles[label])
                if kind == "metric":
                    _draw_halfway(panel, noted, name, styles[label])
            panel.set_title(f"{_place(column, row)}\n{_words(column, kind)}", **SMALL)
            panel.set_xlabel("share of the way", fontsize="small")
    what = (
        "on the way to solutions\n"
        "bands: one sample standard deviation over replicates; crosses: halfway, with "
        "interpolated statistics of batch norms"
    )
    return finish(figure, layout, block, what)


SMALL: dict[str, Any] = {"fontsize": "small", "loc": "left"}


def _planes(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> Iterator[Drawn]:
    for column in layout.columns:
        noting = [r for r in of_place(records, block, column) if SURFACE in r.notes]
        for row in layout.rows:
            own = of_row(noting, row.name)
            if own:
                yield column, row, own


def _place(column: Column, row: Row) -> str:
    return f"{column.label}, {row.label.partition(':')[0]}"


def _words(column: Column, kind: str) -> str:
    return "training loss" if kind == "loss" else f"{column.heading} on test"


def _draw_levels(
    panel: "Axes", surface: dict[str, Any], kind: str, *, is_small_good: bool
) -> None:
    from matplotlib.ticker import MaxNLocator

    # Columns of the grid are along x, so lines of matplotlib are along y.
    grid = [list(line) for line in zip(*surface[kind], strict=True)]
    numbers = [[math.nan if v is None else v for v in line] for line in grid]
    flat = sorted(v for line in numbers for v in line if not math.isnan(v))
    if not is_small_good:
        flat.reverse()
    low, high = sorted((flat[0], flat[int(SHOWN * (len(flat) - 1))]))
    levels = MaxNLocator(LEVELS).tick_values(low, high)
    place = surface["x"], surface["y"], numbers
    # Dark is good, and grey leaves the colours to the solutions.
    colours = "Greys_r" if is_small_good else "Greys"
    filled = panel.contourf(*place, levels=levels, cmap=colours, extend="both")
    panel.contour(*place, levels=levels, colors="#555555", linewidths=0.4)
    panel.figure.colorbar(filled, ax=panel)
    panel.grid(visible=False)


def _draw_solutions(
    panel: "Axes", layout: TableLayout, surface: dict[str, Any]
) -> None:
    styles, labels = row_styles(layout), {row.name: row.label for row in layout.rows}
    for solution in surface["solutions"]:
        label = labels[solution["row"]]
        # None off a plane: the solution is the untouched network itself.
        off = solution["off"] or 0.0
        if off <= GONE:
            place, look = solution["place"], styles[label]
            _draw_solution(panel, place, label, look, is_far=off > FAR)
    untouched = labels.get(layout.untouched_row or "", "untouched")
    star: Style = ("#000000", "-", "*")
    _draw_solution(panel, (0.0, 0.0), untouched, star, size=12)


def _draw_solution(
    panel: "Axes",
    place: Sequence[float],
    label: str,
    style: Style,
    *,
    is_far: bool = False,
    size: int = 9,
) -> None:
    colour, _, marker = style
    x, y = place
    panel.plot(
        [x],
        [y],
        linestyle="none",
        marker=marker,
        markersize=size,
        markerfacecolor="white" if is_far else colour,
        markeredgecolor=colour if is_far else "white",
        markeredgewidth=2.0 if is_far else 0.8,
        label=label,
    )


def _solutions(surface: dict[str, Any]) -> list[str]:
    return [path["row"] for path in surface["paths"]]


def _path(noted: Sequence[dict[str, Any]], row: str, kind: str) -> Curve:
    """Return the mean of replicates over shares of the way."""
    lines = [path[kind] for n in noted for path in n["paths"] if path["row"] == row]
    last = len(lines[0]) - 1
    found = {
        place / last: [math.nan if v is None else v for v in values]
        for place, values in enumerate(zip(*lines, strict=True))
    }
    return Curve.of(found)


def _draw_halfway(
    panel: "Axes", noted: Sequence[dict[str, Any]], row: str, style: Style
) -> None:
    """Draw the metric halfway with interpolated statistics, where it was measured."""
    found = [note["halfway"][row] for note in noted if row in note["halfway"]]
    if found:
        mean = sum(found) / len(found)
        panel.plot([0.5], [mean], color=style[0], marker="x", linestyle="none")

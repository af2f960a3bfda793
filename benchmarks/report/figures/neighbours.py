"""Queries with their nearest images before and after, right and wrong ones framed."""

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RIGHT, WRONG = "#0072b2", "#d55e00"
"""Colours of frames, which the colour-blind tell apart; wrong ones are dashed, too."""
INCHES = 0.85
"""Side of a thumbnail."""


def neighbours(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the picture of a record of a block: of the last row that changed anything.

    Reads the notes `picture_jpeg`, `picture_right` and `picture_counts`; see
    `benchmarks.problems.retrieval.pictured`.
    """
    rows = [row.name for row in layout.rows]
    own = [r for r in records if r.spec.block == block.name and r.status == "done"]
    changed = [r for r in own if r.notes.get("picture_right")]
    if not changed:
        return None
    found = max(changed, key=lambda record: rows.index(record.spec.row))
    return _drawn(layout, found, block)


def _drawn(layout: TableLayout, record: RunRecord, block: Block) -> "Figure":
    import numpy as np
    from matplotlib.figure import Figure
    from PIL import Image

    right = record.notes["picture_right"]
    became, lost = record.notes["picture_counts"]
    content = io.BytesIO(base64.b64decode(record.notes["picture_jpeg"]))
    pixels = np.asarray(Image.open(content).convert("RGB"))
    rows, columns = len(right), len(right[0]) + 1
    side, half = pixels.shape[0] // rows, len(right[0]) // 2
    # A gap after the query, and one between before and after.
    widths = [1, 0.25, *[1] * half, 0.25, *[1] * half]
    size = (INCHES * sum(widths) + 0.4, INCHES * rows + 1.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(rows, len(widths), width_ratios=widths)
    places = [0, *range(2, half + 2), *range(half + 3, 2 * half + 3)]
    for row in range(rows):
        for column in range(columns):
            panel = figure.add_subplot(grid[row, places[column]])
            tile = np.s_[row * side : (row + 1) * side]
            part = pixels[tile, column * side : (column + 1) * side]
            panel.imshow(part, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            if column:
                _frame(panel, is_right=right[row][column - 1])
            if row == 0 and column in (0, 1, half + 1):
                name = {0: "query", 1: "nearest before"}.get(column, "nearest after")
                panel.set_title(name, fontsize="small", loc="left")
    label = next(r.label for r in layout.rows if r.name == record.spec.row)
    figure.suptitle(
        f"{label}; {block.label}. The nearest image becomes right for {became} queries "
        f"of the test, wrong for {lost}.\nSolid blue: of the class of the query. "
        "Dashed orange: not. Queries were drawn by a fixed seed from either kind.\n"
        "Photographs are stretched to squares, as the network sees them.",
        fontsize="small",
        x=0.01,
        ha="left",
    )
    return figure


def _frame(panel: object, *, is_right: bool) -> None:
    for spine in panel.spines.values():  # type: ignore[attr-defined]
        spine.set(
            color=RIGHT if is_right else WRONG,
            linewidth=2.5,
            linestyle="solid" if is_right else (0, (2, 1)),
            capstyle="butt",  # others would fill the gaps
        )

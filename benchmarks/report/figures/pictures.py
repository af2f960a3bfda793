"""Images of the test before and after: neighbours of queries, and detections.

Right and wrong ones are framed, the wrong ones dashed, too.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.figures.panels import titled
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, WRONG = "#0072b2", "#d55e00"
"""Colours of frames, which the colour-blind tell apart."""
THUMBNAIL_INCHES, SCENE_INCHES = 0.85, 2.6
"""Side of a thumbnail, and width of an image with detections."""


def neighbours(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw queries with their nearest images, of the last row that changed anything.

    Reads the notes `picture_jpeg`, `picture_right` and `picture_counts`; see
    `benchmarks.problems.pictured`.
    """
    record = _last_changed(layout, records, block, "picture_right")
    if record is None:
        return None
    from matplotlib.figure import Figure

    right = record.notes["picture_right"]
    became, lost = record.notes["picture_counts"]
    pixels = pixels_of(record.notes["picture_jpeg"])
    rows, columns = len(right), len(right[0]) + 1
    side, half = pixels.shape[0] // rows, len(right[0]) // 2
    # A gap after the query, and one between before and after.
    widths = [1, 0.25, *[1] * half, 0.25, *[1] * half]
    size = (THUMBNAIL_INCHES * sum(widths) + 0.4, THUMBNAIL_INCHES * rows + 1.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(rows, len(widths), width_ratios=widths)
    places = [0, *range(2, half + 2), *range(half + 3, 2 * half + 3)]
    for row in range(rows):
        line = pixels[row * side : (row + 1) * side]
        for column in range(columns):
            panel = figure.add_subplot(grid[row, places[column]])
            part = line[:, column * side : (column + 1) * side]
            panel.imshow(part, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            if column:
                _frame(panel, is_right=right[row][column - 1])
            if row == 0 and column in (0, 1, half + 1):
                name = {0: "query", 1: "nearest before"}.get(column, "nearest after")
                panel.set_title(name, fontsize="small", loc="left")
    return titled(
        figure,
        f"{_label(layout, record)}; {block.label}. The nearest image becomes right for "
        f"{became} queries of the test, wrong for {lost}.\nSolid blue: of the class of "
        "the query. Dashed orange: not. Queries were drawn by a fixed seed from either "
        "kind.\nPhotographs are stretched to squares, as the network sees them.",
    )


def detections(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw detections on some images, of the last row that changed anything.

    Reads the notes `scenes` and `scene_counts`; see
    `benchmarks.problems.pictured`. Source: Huang et al., CVPR 2021, Fig. S3.
    Differs: detections are drawn, as proposals stay the same.
    """
    record = _last_changed(layout, records, block, "scenes")
    if record is None:
        return None
    from matplotlib.figure import Figure

    scenes, (count, every) = record.notes["scenes"], record.notes["scene_counts"]
    size = (SCENE_INCHES * len(scenes) + 0.6, SCENE_INCHES * 1.6 + 1.1)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(2, len(scenes), squeeze=False)
    for column, scene in enumerate(scenes):
        for row, when in enumerate(("before", "after")):
            _draw_scene(panels[row, column], scene, scene[when])
            if column == 0:
                panels[row, 0].set_ylabel(when)
    return titled(
        figure,
        f"{_label(layout, record)}; {block.label}. Detections with a score of .5 or "
        f"more change on {count} of {every} images of the test;\n{len(scenes)} of "
        "these, drawn by a fixed seed. Solid blue: right, with the initial of its "
        "class; dashed orange: wrong.",
    )


def _draw_scene(panel: "Axes", scene: Mapping[str, Any], found: Sequence[Any]) -> None:
    from matplotlib.patches import Rectangle

    panel.imshow(pixels_of(scene["jpeg"]))
    panel.set(xticks=[], yticks=[])
    for x1, y1, x2, y2, name, _, right in found:
        colour, line = (RIGHT, "solid") if right else (WRONG, (0, (3, 2)))
        frame = Rectangle(
            (x1, y1), x2 - x1, y2 - y1, fill=False, color=colour, ls=line, lw=1.4
        )
        panel.add_patch(frame)
        panel.text(x1 + 1, y1 + 1, name[0], color=colour, fontsize=6, va="top")


def _frame(panel: "Axes", *, is_right: bool) -> None:
    for spine in panel.spines.values():
        spine.set(
            color=RIGHT if is_right else WRONG,
            linewidth=2.5,
            linestyle="solid" if is_right else (0, (2, 1)),
            capstyle="butt",  # others would fill the gaps
        )


def _last_changed(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, note: str
) -> RunRecord | None:
    rows = [row.name for row in layout.rows]
    own = [r for r in records if r.spec.block == block.name and r.status == "done"]
    changed = [record for record in own if record.notes.get(note)]
    return max(changed, key=lambda record: rows.index(record.spec.row), default=None)


def pixels_of(jpeg: str) -> Any:
    """Return an image of a record as an array [height, width, 3]."""
    import numpy as np
    from PIL import Image

    content = io.BytesIO(base64.b64decode(jpeg))
    return np.asarray(Image.open(content).convert("RGB"))


def _label(layout: TableLayout, record: RunRecord) -> str:
    return next(row.label for row in layout.rows if row.name == record.spec.row)

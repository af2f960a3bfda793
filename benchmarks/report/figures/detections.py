"""Detections on the same images before and after, right and wrong ones framed."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.figures.neighbours import RIGHT, WRONG
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = 2.6
"""Width of an image."""


def detections(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the picture of a record of a block: of the last row that changed anything.

    Reads the notes `scenes` and `scene_counts`; see
    `benchmarks.problems.detection.pictured`. Source: Huang et al., CVPR 2021, Fig. S3.
    Differs: detections are drawn, as proposals stay the same.
    """
    rows = [row.name for row in layout.rows]
    own = [r for r in records if r.spec.block == block.name and r.status == "done"]
    changed = [r for r in own if r.notes.get("scenes")]
    if not changed:
        return None
    found = max(changed, key=lambda record: rows.index(record.spec.row))
    return _drawn(layout, found, block)


def _drawn(layout: TableLayout, record: RunRecord, block: Block) -> "Figure":
    from matplotlib.figure import Figure

    scenes, (count, every) = record.notes["scenes"], record.notes["scene_counts"]
    size = (INCHES * len(scenes) + 0.6, INCHES * 1.6 + 1.1)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(2, len(scenes), squeeze=False)
    for column, scene in enumerate(scenes):
        for row, when in enumerate(("before", "after")):
            _draw(panels[row, column], scene, scene[when])
            if column == 0:
                panels[row, 0].set_ylabel(when)
    label = next(r.label for r in layout.rows if r.name == record.spec.row)
    figure.suptitle(
        f"{label}; {block.label}. Detections with a score of .5 or more change on "
        f"{count} of {every} images of the test;\n{len(scenes)} of these, drawn by a "
        "fixed seed. Solid blue: right, with the initial of its class; dashed orange: "
        "wrong.",
        fontsize="small",
        x=0.01,
        ha="left",
    )
    return figure


def _draw(panel: "Axes", scene: Mapping[str, Any], found: Sequence[Any]) -> None:
    import numpy as np
    from matplotlib.patches import Rectangle
    from PIL import Image

    content = io.BytesIO(base64.b64decode(scene["jpeg"]))
    panel.imshow(np.asarray(Image.open(content).convert("RGB")))
    panel.set(xticks=[], yticks=[])
    for x1, y1, x2, y2, name, _, right in found:
        colour, line = (RIGHT, "solid") if right else (WRONG, (0, (3, 2)))
        frame = Rectangle(
            (x1, y1), x2 - x1, y2 - y1, fill=False, color=colour, ls=line, lw=1.4
        )
        panel.add_patch(frame)
        panel.text(x1 + 1, y1 + 1, name[0], color=colour, fontsize=6, va="top")

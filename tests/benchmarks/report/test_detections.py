"""The figure of detections: what it reads, and how many frames it has."""

import base64
import io

from PIL import Image

from benchmarks.report.figures.panels import to_png
from benchmarks.report.figures.pictures import detections
from benchmarks.report.layout import Block
from tests.benchmarks.report.report_cases import make_layout, make_record, make_row

BLOCK = Block("balanced", "detectors trained with cross-entropy")
LAYOUT = make_layout(
    (make_row("theirs", "their method"), make_row("ours", "our method")),
    blocks=(BLOCK, Block("other", "other")),
)
BOXES = [[2, 3, 20, 25, "cell", 0.9, True], [10, 4, 30, 20, "disc", 0.6, False]]


def scene():
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(content, "JPEG")
    jpeg = base64.b64encode(content.getvalue()).decode()
    return {"jpeg": jpeg, "before": BOXES[:1], "after": BOXES}


def record(row="ours", count=3):
    return make_record(
        row, 0, [0.5], notes={"scenes": [scene()] * count, "scene_counts": [12, 87]}
    )


def test_every_detection_has_a_frame_with_its_initial():
    figure = detections(LAYOUT, [record()], BLOCK)
    assert [len(panel.patches) for panel in figure.axes] == [1, 1, 1, 2, 2, 2]
    assert [text.get_text() for text in figure.axes[-1].texts] == ["c", "d"]
    assert {frame.get_linestyle() for frame in figure.axes[0].patches} == {"solid"}
    assert [panel.get_ylabel() for panel in figure.axes] == [
        *("before", "", "", "after", "", "")
    ]
    said = figure._suptitle.get_text()
    assert "our method; detectors trained with cross-entropy." in said
    assert "change on 12 of 87 images" in said
    assert to_png(figure).startswith(b"\x89PNG")


def test_the_last_row_that_changed_anything_is_drawn():
    figure = detections(LAYOUT, [record("theirs"), record("ours", 0)], BLOCK)
    assert "their method" in figure._suptitle.get_text()
    assert detections(LAYOUT, [record("ours", 0)], BLOCK) is None
    assert detections(LAYOUT, [record()], LAYOUT.blocks[1]) is None

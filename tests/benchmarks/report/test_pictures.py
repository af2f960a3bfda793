"""Pictures of what a result changed: neighbours of queries, and detections."""

import base64
import io

import pytest
from PIL import Image

from benchmarks.report.figures.panels import to_png
from benchmarks.report.figures.pictures import RIGHT, WRONG, detections, neighbours
from benchmarks.report.layout import Block
from tests.benchmarks.report.report_cases import make_layout, make_record, make_row

BLOCK = Block("balanced", "networks trained with FastAP")
LAYOUT = make_layout(
    [make_row("ours", "our method")], blocks=(BLOCK, Block("other", "other"))
)
SIDE, ROWS, EACH = 8, 3, 4


def picture():
    """A line of coloured squares for every query."""
    canvas = Image.new("RGB", ((1 + 2 * EACH) * SIDE, ROWS * SIDE), "red")
    content = io.BytesIO()
    canvas.save(content, "JPEG")
    return base64.b64encode(content.getvalue()).decode()


def record(right=True):
    notes = {
        "picture_jpeg": picture(),
        "picture_right": [[right] * EACH + [not right] * EACH] * ROWS,
        "picture_counts": [12, 5],
    }
    return make_record("ours", 0, [0.5], notes=notes)


def test_queries_and_their_neighbours_are_framed():
    figure = neighbours(LAYOUT, [record()], BLOCK)
    assert len(figure.axes) == ROWS * (1 + 2 * EACH)
    _, first, *_ = figure.axes
    last = figure.axes[-1]
    colours = [panel.spines["left"].get_edgecolor()[:3] for panel in (first, last)]
    expected = [
        tuple(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)) for c in (RIGHT, WRONG)
    ]
    assert colours == [pytest.approx(colour) for colour in expected]
    said = figure._suptitle.get_text()
    assert "our method; networks trained with FastAP." in said
    assert "becomes right for 12 queries of the test, wrong for 5." in said
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    expected = ["query", "nearest before", "nearest after"]
    assert [title for title in titles if title] == expected
    # It is drawn alike every time.
    assert to_png(figure) == to_png(neighbours(LAYOUT, [record()], BLOCK))


def test_nothing_is_drawn_without_a_picture():
    bare = make_record("ours", 0, [0.5])
    none = make_record("ours", 0, [0.5], notes={"picture_right": []})
    assert neighbours(LAYOUT, [bare, none], BLOCK) is None
    assert neighbours(LAYOUT, [record()], LAYOUT.blocks[1]) is None


SCENE_BLOCK = Block("balanced", "detectors trained with cross-entropy")
SCENE_LAYOUT = make_layout(
    (make_row("theirs", "their method"), make_row("ours", "our method")),
    blocks=(SCENE_BLOCK, Block("other", "other")),
)
BOXES = [[2, 3, 20, 25, "cell", 0.9, True], [10, 4, 30, 20, "disc", 0.6, False]]


def scene():
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(content, "JPEG")
    jpeg = base64.b64encode(content.getvalue()).decode()
    return {"jpeg": jpeg, "before": BOXES[:1], "after": BOXES}


def scene_record(row="ours", count=3):
    return make_record(
        row, 0, [0.5], notes={"scenes": [scene()] * count, "scene_counts": [12, 87]}
    )


def test_every_detection_has_a_frame_with_its_initial():
    figure = detections(SCENE_LAYOUT, [scene_record()], SCENE_BLOCK)
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
    figure = detections(
        SCENE_LAYOUT, [scene_record("theirs"), scene_record("ours", 0)], SCENE_BLOCK
    )
    assert "their method" in figure._suptitle.get_text()
    assert detections(SCENE_LAYOUT, [scene_record("ours", 0)], SCENE_BLOCK) is None
    assert detections(SCENE_LAYOUT, [scene_record()], SCENE_LAYOUT.blocks[1]) is None

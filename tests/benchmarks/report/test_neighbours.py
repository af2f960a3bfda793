"""The figure of neighbours: what it reads, how many panels and frames it has."""

import base64
import io

import pytest
from PIL import Image

from benchmarks.report.figures.panels import to_png
from benchmarks.report.figures.pictures import RIGHT, WRONG, neighbours
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

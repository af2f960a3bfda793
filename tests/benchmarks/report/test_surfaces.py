"""Figures of planes and paths, from hand-written notes."""

import pytest

from benchmarks.report.figures.panels import to_png
from benchmarks.report.figures.surfaces import paths_to_solutions, surfaces
from benchmarks.runs.notes import SURFACE
from tests.benchmarks.report.report_cases import (
    MCR,
    make_layout,
    make_record,
    make_row,
)

ROWS = [
    make_row("theta", "untouched network"),
    make_row("ours", "our method"),
    make_row("theirs", "their method"),
    make_row("plane", "plane of phi: best point"),
]
LAYOUT = make_layout(ROWS, [MCR], untouched_row="theta")
(BLOCK,) = LAYOUT.blocks


def note(**changes):
    found = {
        "x": [0.0, 1.0, 2.0],
        "y": [-1.0, 0.0],
        "loss": [[3.0, 1.0], [2.0, 0.5], [None, 0.25]],
        "metric": [[0.3, 0.1], [0.2, 0.15], [0.4, 0.25]],
        "share": 0.876,
        "solutions": [
            {"row": "ours", "place": [2.0, 0.0], "off": 0.02},
            {"row": "theirs", "place": [1.0, -1.0], "off": 0.5},
        ],
        "paths": [
            {"row": "ours", "loss": [1.0, 0.5, 0.25], "metric": [0.1, 0.2, 0.4]},
            {"row": "theirs", "loss": [1.0, 3.0, 2.0], "metric": [0.1, 0.2, 0.2]},
        ],
        "halfway": {},
    }
    return {SURFACE: found | changes}


def record(replicate=0, **changes):
    return make_record("plane", replicate, [0.2], notes=note(**changes))


def marks(panel):
    """Label, place and whether it is filled, of every point."""
    return {
        line.get_label(): (
            line.get_xydata()[0].tolist(),
            line.get_markerfacecolor() != "white",
        )
        for line in panel.lines
    }


def test_a_plane_has_two_panels_with_its_solutions():
    figure = surfaces(LAYOUT, [record()], BLOCK)
    loss, metric, *colourbars = figure.axes
    assert len(colourbars) == 2
    expected = {
        "untouched network": ([0.0, 0.0], True),
        "our method": ([2.0, 0.0], True),
        "their method": ([1.0, -1.0], False),
    }
    assert marks(loss) == marks(metric) == expected
    assert loss.get_title(loc="left") == "A9A MCR, plane of phi\ntraining loss"
    assert metric.get_title(loc="left").endswith("A9A MCR ↓ on test")
    assert loss.get_xlabel() == "88 % of squared displacement on it"
    assert to_png(figure) == to_png(surfaces(LAYOUT, [record()], BLOCK))


def test_a_solution_that_is_not_on_the_plane_has_no_mark():
    found = [
        {"row": "ours", "place": [0.01, 0.0], "off": 0.95},
        {"row": "theirs", "place": [0.0, 0.0], "off": None},
    ]
    loss, *_ = surfaces(LAYOUT, [record(solutions=found)], BLOCK).axes
    assert set(marks(loss)) == {"untouched network", "their method"}


def test_paths_are_means_over_replicates():
    other = [{"row": "ours", "loss": [1.0, 1.5, 0.75], "metric": [0.1, 0.4, 0.2]}]
    figure = paths_to_solutions(LAYOUT, [record(), record(1, paths=other)], BLOCK)
    loss, metric = figure.axes
    lines = {line.get_label(): line for line in loss.lines}
    assert lines["our method"].get_xdata().tolist() == [0.0, 0.5, 1.0]
    assert lines["our method"].get_ydata().tolist() == [1.0, 1.0, 0.5]
    assert lines["their method"].get_ydata().tolist() == [1.0, 3.0, 2.0]
    ours = next(line for line in metric.lines if line.get_label() == "our method")
    assert ours.get_ydata().tolist() == pytest.approx([0.1, 0.3, 0.3])


def test_statistics_that_were_interpolated_have_a_cross_halfway():
    halfway = [{"ours": 0.2}, {"ours": 0.4}]
    records = [record(n, halfway=each) for n, each in enumerate(halfway)]
    loss, metric = paths_to_solutions(LAYOUT, records, BLOCK).axes
    (cross,) = (line for line in metric.lines if line.get_marker() == "x")
    assert cross.get_xydata().tolist() == [[0.5, pytest.approx(0.3)]]
    assert all(line.get_marker() != "x" for line in loss.lines)


def test_nothing_is_drawn_without_a_plane():
    bare = make_record("ours", 0, [0.2])
    assert surfaces(LAYOUT, [bare], BLOCK) is None
    assert paths_to_solutions(LAYOUT, [bare], BLOCK) is None

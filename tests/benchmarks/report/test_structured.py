"""Figures and sections of structured answers, from hand-written notes."""

import base64
import io
from dataclasses import replace

import pytest
from PIL import Image

from benchmarks.report.cells import judge
from benchmarks.report.figures.rankings import loss_over_metric
from benchmarks.report.figures.structured import skeletons
from benchmarks.report.layout import Block
from benchmarks.report.sections.answers import answers
from benchmarks.report.sections.noted import rank_agreement
from benchmarks.runs.spec import Arm
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    cells_in,
    make_layout,
    make_record,
    make_row,
)

BLOCK = Block("balanced", "natural")
ROWS = make_layout(
    [make_row("mse", "squared"), make_row("ours", "ReLoss")], blocks=(BLOCK,)
)


def jpeg():
    content = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(content, "JPEG")
    return base64.b64encode(content.getvalue()).decode()


def people(near=True):
    joints = [[1.0, 2.0, near], [5.0, 6.0, not near], [3.0, 3.0, None]]
    one = {"jpeg": jpeg(), "joints": joints}
    return {"people": [one] * 2, "bones": [[0, 1], [1, 2]]}


def noted(row, notes, kind="theta"):
    record = make_record(row, 0, [0.5], notes=notes)
    return replace(record, spec=replace(record.spec, arm=Arm(kind, "reloss")))


def test_rows_show_the_same_people():
    records = [noted("ours", people()), noted("mse", people(near=False))]
    figure = skeletons(ROWS, records, BLOCK)
    assert len(figure.axes) == 2 * 2
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["squared", "ReLoss"]
    # Two bones and three joints.
    assert all(len(axes.lines) == 5 for axes in figure.axes)
    marks = [line.get_marker() for line in figure.axes[2].lines[2:]]
    assert marks == ["o", "x", "x"]
    assert skeletons(ROWS, [make_record("ours", 0, [0.5])], BLOCK) is None


GROUPS = {
    "held_out_cost": [0.1, 0.3, 0.2],
    "held_out_loss": [1.0, 3.0, 2.0],
    "held_out_base": [3.0, 1.0, 2.0],
    "rank_correlation": 1.0,
    "rank_correlation_base": -1.0,
}


def test_groups_are_drawn_by_rank_for_both_losses():
    figure = loss_over_metric(ROWS, [noted("ours", GROUPS)], BLOCK)
    above, below = figure.axes
    assert above.collections[0].get_offsets().tolist() == [[1, 1], [3, 3], [2, 2]]
    assert below.collections[0].get_offsets().tolist() == [[1, 3], [3, 1], [2, 2]]
    assert "1.000" in above.get_title() and "-1.000" in below.get_title()
    # What stands on top of a network has its notes, and is not drawn again.
    assert loss_over_metric(ROWS, [noted("ours", GROUPS, "method")], BLOCK) is None


def test_the_usual_loss_of_classes_has_a_name():
    named = {**GROUPS, "rank_correlation_cross_entropy": -0.5}
    del named["rank_correlation_base"]
    figure = loss_over_metric(ROWS, [noted("ours", named)], BLOCK)
    assert "-0.500" in figure.axes[1].get_title()


def test_the_usual_loss_has_a_column_of_its_own():
    notes = {
        "rank_correlation": 0.9,
        "rank_correlation_base": 0.8,
        "rank_correlation_plain": 0.7,
        "rank_correlation_plain_base": 0.6,
    }
    records = [make_record("metricopt", 0, [0.5], notes=notes)]
    (line,) = cells_in(rank_agreement(judge(LAYOUT, records)))
    assert line[1:] == ["MetricOpt", ".9000", ".8000", ".7000", ".6000"]


def test_answers_are_marked_and_shared_by_rows():
    def questions(answer):
        one = {"question": "谁?", "references": ["甲", "甲|乙"], "before": "是"}
        return {"questions": [one | {"answer": answer, "after": "的"}]}

    records = [noted("mse", questions("甲")), noted("ours", questions("甲"))]
    lines = cells_in(answers(ROWS, records))
    assert lines == [["谁?", "甲 / 甲/乙", "squared, ReLoss", "是【甲】的"]]
    records[1] = noted("ours", questions("丙"))
    assert [line[2:] for line in cells_in(answers(ROWS, records))] == [
        ["squared", "是【甲】的"],
        ["ReLoss", "是【丙】的"],
    ]
    assert answers(ROWS, [make_record("mse", 0, [0.5])]) == []


def test_translations_stand_beside_their_references():
    def translations(answer):
        one = {"source": "a cat", "reference": "una | gatto", "answer": answer}
        return {"translations": [one]}

    records = [noted("mse", translations("la  cane")), noted("ours", translations("x"))]
    assert cells_in(answers(ROWS, records)) == [
        ["a cat", "una / gatto", "squared", "la cane"],
        ["", "", "ReLoss", "x"],
    ]
    # Of several columns each has a part of its own.
    spec = replace(records[1].spec, column="other")
    heads = [
        answers(ROWS, [records[0], replace(records[1], spec=spec)])[at] for at in (0, 3)
    ]
    assert heads == [f"## Answers: {records[0].spec.column}", "## Answers: other"]


@pytest.mark.parametrize("draw", [skeletons, loss_over_metric])
def test_other_blocks_are_not_drawn(draw):
    other = Block("other", "other")
    assert draw(ROWS, [noted("ours", people() | GROUPS)], other) is None

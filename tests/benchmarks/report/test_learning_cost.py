"""The section on what learning an optimizer took, from hand-written records."""

from dataclasses import replace

import pytest

from benchmarks.report.cells import judge
from benchmarks.report.sections.learning_cost import LEARNING, learning_cost
from benchmarks.runs.notes import META_STEPS
from tests.benchmarks.report.report_cases import (
    MCR,
    cells_in,
    make_finetuned,
    make_layout,
    make_record,
    page_of,
)

LAYOUT = make_layout(
    [
        make_finetuned("loss-only", "SGD"),
        make_finetuned("loss-only-dense", "dense", "loss-only"),
        make_finetuned("learned", "learned", "loss-only"),
    ],
    [MCR],
)


def course(*values):
    """A trace whose error at steps 0, 10, 20, ... is as told, twice."""
    return tuple(
        (10 * place, 0, None, [value, value]) for place, value in enumerate(values)
    )


def records(*values, shared=900, own=5, **notes):
    spent = {"queries": shared + own, "shared_queries": shared, "gradient_steps": 30}
    return [
        make_record("loss-only", 0, [0.2, 0.2]),
        make_record("loss-only-dense", 0, [0.2, 0.2], queries=35),
        make_record(
            "learned",
            0,
            [values[-1]] * 2,
            trace=course(*values),
            notes={META_STEPS: 4_001, **notes},
            **spent,
        ),
    ]


def lines(*values, **more):
    return cells_in(learning_cost(LAYOUT, judge(LAYOUT, records(*values, **more))))


def test_a_line_by_hand():
    # It reaches 0.2 at step 10 of 30: 4,001 / 20 fine-tunings. 900 / (35 - 5) pay.
    ((*place, queries, own, steps, by_queries, by_steps),) = lines(0.3, 0.2, 0.1, 0.1)
    assert place == ["Balanced", "A9A MCR", "learned"]
    assert (queries, own, steps) == ("900", "5", "4,001")
    assert (by_queries, by_steps) == ("30", "201")


def test_dense_evaluation_is_what_a_learned_optimizer_saves():
    # Whatever rows are compared with beside.
    layout = replace(LAYOUT, loss_only_row="learned", rival_row="learned")
    shown = records(0.3, 0.2, 0.1, 0.1)
    assert learning_cost(layout, judge(layout, shown)) == learning_cost(
        LAYOUT, judge(LAYOUT, shown)
    )


def test_a_row_on_another_network_is_held_against_rows_there():
    *rows, learned = LAYOUT.rows
    own = replace(learned, base_row="margin-loss-only", rival_row="margin-dense")
    more = [make_finetuned(name, name) for name in ("margin-dense", "margin-loss-only")]
    layout = make_layout([*rows, *more, own], [MCR])
    shown = [
        *records(0.5, 0.4, 0.4, 0.4),
        make_record("margin-loss-only", 0, [0.4, 0.4]),
        make_record("margin-dense", 0, [0.4, 0.4], queries=95),
    ]
    ((*_, by_queries, by_steps),) = cells_in(
        learning_cost(layout, judge(layout, shown))
    )
    assert (by_queries, by_steps) == ("10", "201")  # 900 / (95 - 5)


@pytest.mark.parametrize(
    ("values", "more", "expected"),
    [
        ((0.3, 0.3, 0.3, 0.2), {}, ("30", "·")),
        ((0.3, 0.3, 0.3, 0.3), {}, ("·", "·")),
        ((0.3, 0.3, 0.2, 0.21), {}, ("·", "401")),
        ((0.3, 0.2, 0.2, 0.2), {"own": 35}, ("·", "201")),
        ((0.3, 0.2, 0.2, 0.2), {"shared": 0, "own": 0}, ("0", "201")),
    ],
)
def test_what_never_pays_is_told(values, more, expected):
    ((*_, by_queries, by_steps),) = lines(*values, **more)
    assert (by_queries, by_steps) == expected


@pytest.mark.parametrize(
    ("row", "heading"),
    [("loss-only-dense", "pays in queries"), ("loss-only", "pays in steps")],
)
def test_without_a_row_to_compare_with_nothing_is_told_of_it(row, heading):
    shown = [record for record in records(0.3, 0.2, 0.1, 0.1) if record.spec.row != row]
    others = [each for each in LAYOUT.rows if each.name != row]
    layout = make_layout([replace(each, base_row=None) for each in others], [MCR])
    text = "\n".join(learning_cost(layout, judge(layout, shown)))
    whole = "\n".join(learning_cost(LAYOUT, judge(LAYOUT, shown)))
    assert heading not in text and whole.count(heading) == 2
    assert "4,001" in text


def test_a_page_has_the_section_where_an_optimizer_was_learned():
    shown = records(0.3, 0.2, 0.1, 0.1)
    assert f"\n{LEARNING}\n" in page_of(LAYOUT, shown)
    assert LEARNING not in page_of(LAYOUT, shown[:2])

"""Sections and figures of networks that methods train, from hand-written notes."""

import numpy as np
import pytest

from benchmarks.report.cells import judge
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.loss_surfaces import shape_of
from benchmarks.report.sections.noted import (
    AGREEMENT,
    TRAINING,
    rank_agreement,
    training_cost,
)
from benchmarks.runs.notes import SURFACE_RADIUS, SURFACE_SIDE
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    LOSS_ONLY,
    cells_in,
    make_record,
    page_of,
)

FIGURES = {"metric_over_seconds", "metric_over_queries", "training_course"}
FIGURES |= {"loss_matrices", "policy_course", "loss_slopes"}


def trained(row, replicate, *, steps=100, seconds=20.0, queries=0, **notes):
    return make_record(
        row,
        replicate,
        [0.2 + 0.01 * replicate],
        notes={"train_error": 0.1 + 0.02 * replicate} | notes,
        gradient_steps=steps,
        queries=queries,
        seconds={"total": 1.0, "network": seconds},
    )


RECORDS = [
    *(trained("loss-only", number) for number in range(3)),
    *(
        trained(
            "metricopt",
            number,
            steps=250,
            seconds=40.0 + number,
            queries=80,
            course_mcr=[0.4, 0.3],
            course_observe_loss=[1.2, 0.9],
            phi_steps=[0, 100],
            phi=[1, 0, 0, 1, 0.9, 0.1, 0.1, 1.0],
            slope_bounds=[0.5],
            slopes=[0.6, 1.0 - number / 4, 0.2, number / 4, 0, 0, 0.1, 1.0],
            rewards=[1.0, -1.0],
            entropies=[1.1, 1.0, 0.9],
            lowered=[0.3, 0.3, 0.2],
            raised=[0.3, 0.4, 0.2],
            rank_correlation=0.9 + 0.01 * number,
            rank_correlation_cross_entropy=0.8,
        )
        for number in range(3)
    ),
]


def test_training_is_told_by_hand():
    found = training_cost(judge(LAYOUT, RECORDS))
    assert found[0] == TRAINING
    assert cells_in(found) == [
        ["A9A MCR", "loss only", ".1200±.0200", "1.0", "0", "20"],
        ["A9A MCR", "MetricOpt", ".1200±.0200", "2.5", "80", "41"],
    ]


def test_rank_correlations_are_told_by_hand():
    (line,) = cells_in(rank_agreement(judge(LAYOUT, RECORDS)))
    assert line == ["A9A MCR", "MetricOpt", ".9100±.0100", ".8000±.0000", "·", "·"]
    # A rank correlation alone is no learned loss.
    record = make_record("metricopt", 0, [0.2], notes={"rank_correlation": 0.9})
    assert rank_agreement(judge(LAYOUT, [*LOSS_ONLY, record])) == []


def test_other_records_have_neither_section_nor_figure():
    cells = judge(LAYOUT, LOSS_ONLY)
    assert training_cost(cells) == rank_agreement(cells) == []
    drawn = {name.partition("-")[0] for name in draw_all(LAYOUT, LOSS_ONLY)}
    assert not drawn & FIGURES


def test_every_figure_is_drawn_where_there_is_something():
    drawn = draw_all(LAYOUT, RECORDS)
    for name in FIGURES:
        parts = drawn[f"{name}-balanced"].findobj()
        texts = [part.get_text() for part in parts if hasattr(part, "get_text")]
        assert any("MetricOpt" in text for text in texts), name
    (panel,) = drawn["metric_over_queries-balanced"].axes
    spent = {float(bars.lines[0].get_xdata()[0]) for bars in panel.containers}
    assert spent == {0.0, 80.0}
    loss = drawn["training_course-balanced"].axes[1].get_lines()[0]
    assert loss.get_ydata().tolist() == [1.2, 0.9]
    policy = drawn["policy_course-balanced"].axes[0].get_lines()[0]
    assert list(policy.get_ydata()) == [1.0, 0.0]


def test_slopes_are_means_over_examples_where_there_are_some():
    (panel,) = draw_all(LAYOUT, RECORDS)["loss_slopes-balanced"].axes
    first, last, usual = (line.get_ydata() for line in panel.get_lines())
    assert first.tolist() == pytest.approx([0.6, 0.2])
    assert np.isnan(last[0]) and last[1] == pytest.approx(0.1)
    assert usual.tolist() == [0.75, 0.25]
    ticks = [text.get_text() for text in panel.get_xticklabels()]
    assert ticks == ["0-0.5", "0.5-1"]


def test_a_row_far_from_the_others_is_named_instead_of_drawn():
    rows = {"loss-only": 0.21, "shift": 0.2105, "metricopt": 0.9}
    records = [
        make_record(row, number, [value], seconds={"total": 1.0, "network": 2.0})
        for row, value in rows.items()
        for number in range(2)
    ]
    figure = draw_all(LAYOUT, records)["metric_over_seconds-balanced"]
    (panel,) = figure.axes
    (text,) = panel.texts
    assert text.get_text() == "far out of view\nMetricOpt: 0.900"
    assert panel.get_ylim()[1] < 0.3


def test_optimisation_and_generalisation_are_four_panels():
    fitted = {"course_train_loss": [0.9, 0.1], "course_train_error": [0.3, 0.2]}
    fitted |= {"course_train_unlikely": [0.2, 0.1]}
    records = [
        trained(row, number, course_mcr=[0.4, 0.25], **fitted)
        for row in ("loss-only", "metricopt")
        for number in range(2)
    ]
    name = "optimization_and_generalization-balanced"
    drawn = draw_all(LAYOUT, records)[name]
    loss, error, observed, unlikely = (p.get_lines()[0] for p in drawn.axes)
    assert loss.get_ydata().tolist() == [0.9, 0.1]
    assert error.get_ydata().tolist() == [0.3, 0.2]
    assert observed.get_ydata().tolist() == [0.4, 0.25]
    assert unlikely.get_ydata().tolist() == [0.2, 0.1]
    legend = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert {"loss only", "MetricOpt"} <= set(legend)
    # One row has nothing to be compared with.
    assert name not in draw_all(LAYOUT, records[:2])


def test_the_shape_of_a_surface_is_that_of_known_ones():
    side = np.linspace(-SURFACE_RADIUS, SURFACE_RADIUS, SURFACE_SIDE)
    x, y = np.meshgrid(side, side, indexing="ij")
    bowl, saddle, plane = x**2 + 3 * y**2, x**2 - y**2, 2 * x + y
    steep = 1 + (2 * x) ** 2 + (6 * y) ** 2
    found = shape_of(bowl)
    assert found["curvature"] == pytest.approx((12 / steep**2)[1:-1, 1:-1].mean())
    assert found["negative"] == 0
    assert found["ratio"] == 0
    found = shape_of(saddle)
    assert found["curvature"] < 0
    assert (found["negative"], found["ratio"]) == (1, pytest.approx(1))
    assert shape_of(plane)["curvature"] == pytest.approx(0)
    assert shape_of(x * y)["negative"] == 1


def test_loss_surfaces_are_drawn_over_epochs():
    bowl = [float(1 + a**2 + b**2) for a in range(-4, 5) for b in range(-4, 5)]
    notes = {"surfaces": 2 * bowl, "surface_epochs": [2.0, 4.0]}
    records = [trained("metricopt", number, **notes) for number in range(2)]
    drawn = draw_all(LAYOUT, records)
    first, second, _ = drawn["loss_surfaces-balanced"].axes
    assert [panel.get_title() for panel in (first, second)] == ["epoch 2", "epoch 4"]
    curvature, bends, ratio = drawn["surface_curvature-balanced"].axes
    (line,) = curvature.get_lines()
    assert line.get_xdata().tolist() == [2, 4]
    assert bends.get_lines()[0].get_ydata().tolist() == [0, 0]
    assert ratio.get_lines()[0].get_ydata().tolist() == [0, 0]


def test_weights_of_a_loss_are_lines_over_steps():
    notes = {"weights_steps": [0, 50, 100], "weights": [1, 0, 0.9, 0.1, 0.8, 0.2]}
    records = [trained("metricopt", number, **notes) for number in range(2)]
    (panel,) = draw_all(LAYOUT, records)["loss_weights-balanced"].axes
    within, between = panel.lines
    assert list(within.get_ydata()) == [1, 0.9, 0.8]
    assert list(between.get_ydata()) == [0, 0.1, 0.2]
    assert within.get_linestyle() == "-" and between.get_linestyle() == "--"
    assert panel.get_title(loc="left") == "MetricOpt"


def test_the_page_has_them():
    text = page_of(LAYOUT, RECORDS)
    for heading in (TRAINING, AGREEMENT):
        assert f"\n{heading}\n" in text
    assert "loss_matrices-balanced.png" in text

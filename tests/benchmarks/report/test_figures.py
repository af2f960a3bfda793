"""Figures of Fig. 1, of mismatch, and of searches with one meta-test."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import t

from benchmarks.report.columns import Column
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.gains import gain_over_mismatch
from benchmarks.report.figures.panels import (
    FIXED_ROWS,
    NARROW,
    look,
    row_styles,
    to_png,
)
from benchmarks.report.figures.query_curves import query_curves
from benchmarks.report.figures.value_functions import loss_and_metric
from benchmarks.runs.spec import Unit
from tests.benchmarks.report.report_cases import (
    bars_of,
    lines_of,
    make_finetuned,
    make_layout,
    make_record,
    make_row,
)

LAYOUT = make_layout(
    (
        make_finetuned("loss-only", "loss only"),
        make_row("metricopt-literal", "literal", "loss-only"),
        make_finetuned("metricopt", "MetricOpt", "loss-only"),
        make_row("cma-es", "CMA-ES", "loss-only"),
        make_row("offsets", base_row="loss-only"),
    ),
    (
        Column("served", "served", Unit("mcr")),
        Column("torn", "torn", Unit("f1")),
        Column("empty", "empty", Unit("mcr")),
    ),
    title="Three columns",
    loss_only_row="loss-only",
    replicated=False,
    mismatch_rows=("metricopt", "cma-es"),
)
(BLOCK,) = LAYOUT.blocks
PATHS = {
    "path_steps": [5.0, 15.0, 25.0],
    "path_loss_loss": [0.9, 0.8, 0.7],
    "path_loss_cost": [0.5, 0.45, 0.4],
    "path_guided_loss": [0.9, 0.85, 0.8],
    "path_guided_cost": [0.5, 0.4, None],
}


def _record(row, test, *, column="served", **fields):
    return make_record(row, 0, test, column=column, **fields)


def _mismatch_records():
    return [
        _record("loss-only", [0.2, 0.2]),
        _record("metricopt", [0.19, 0.17], notes={"loss_spearman": 0.9}),
        _record("cma-es", [0.22]),
        _record("offsets", [0.10]),
        _record("loss-only", [0.7, 0.5], column="torn"),
        _record("metricopt", [0.9, 0.8], column="torn", notes={"loss_spearman": -0.2}),
        _record("loss-only", [0.3, 0.3], column="empty"),
    ]


def test_gain_over_mismatch_by_hand():
    figure = gain_over_mismatch(LAYOUT, _mismatch_records(), BLOCK)
    (panel,), (title,) = figure.axes, figure.texts
    bars = bars_of(panel)
    assert set(bars) == {"MetricOpt", "CMA-ES"}
    points, ends = bars["MetricOpt"]
    # torn: costs .3 .5 and .1 .2, gains .2 .3 of .4; served: gains .01 .03 of .2.
    assert np.array(points) == pytest.approx(np.array([[-0.2, 62.5], [0.9, 10.0]]))
    # The error of two differences is half of what is between them.
    half = t.ppf(0.975, 1) * np.array([100 * 0.05 / 0.4, 100 * 0.01 / 0.2])
    expected = [[62.5 - half[0], 62.5 + half[0]], [10 - half[1], 10 + half[1]]]
    assert np.array(ends) == pytest.approx(np.array(expected))
    assert np.array(bars["CMA-ES"][0]) == pytest.approx(np.array([[0.9, -10.0]]))
    # Columns are named in order of mismatch.
    assert [text.get_text() for text in panel.texts] == ["torn", "served"]
    assert [text.xy[0] for text in panel.texts] == [-0.2, 0.9]
    assert panel.get_xlabel().startswith("rank correlation of loss and cost")
    # Their names keep off the title.
    to_png(figure)
    bottom = title.get_window_extent().y0
    gaps = [bottom - name.get_window_extent().y1 for name in panel.texts]
    assert min(gaps) > 0.1 * figure.dpi


def test_deviations_say_what_they_are_over():
    def last(count, layout=LAYOUT):
        return query_curves(layout, records, BLOCK).get_suptitle().splitlines()[-count:]

    records = [
        _record("cma-es", [0.1, 0.3], queries=90),
        *(_record(row, [0.1, 0.3]) for row in ("loss-only", "metricopt")),
    ]
    over = "bands and bars: one sample standard deviation over {}"
    assert last(1) == [over.format("meta-tests")]
    records[1] = _record("metricopt", [0.1, 0.3], value_functions=2)
    assert " ".join(last(2)) == over.format("meta-tests or value functions")
    assert max(map(len, last(2))) <= NARROW[1]
    replicated = dataclasses.replace(LAYOUT, replicated=True)
    assert last(1, replicated) == [over.format("replicates")]


def test_names_of_close_columns_are_kept_apart():
    records = _mismatch_records()
    close = {"loss_spearman": 0.899}
    records.append(_record("metricopt", [0.2], column="empty", notes=close))
    (panel,) = gain_over_mismatch(LAYOUT, records, BLOCK).axes
    low, high = panel.get_xlim()
    assert [text.get_text() for text in panel.texts] == ["torn", "empty", "served"]
    places = [text.get_position()[0] for text in panel.texts]
    expected = [-0.2, 0.899, 0.899 + 0.05 * (high - low)]
    assert places == pytest.approx(expected, abs=1e-3)


def test_gain_over_mismatch_without_anything_to_gain():
    records = _mismatch_records()
    for nothing in ({"mismatch_rows": ()}, {"loss_only_row": None}):
        layout = dataclasses.replace(LAYOUT, **nothing)
        assert gain_over_mismatch(layout, records, BLOCK) is None
    unnoted = [dataclasses.replace(record, notes={}) for record in records]
    assert gain_over_mismatch(LAYOUT, unnoted, BLOCK) is None
    perfect = [
        _record("loss-only", [0.0, 0.0]),
        _record("metricopt", [0.0, 0.1], notes={"loss_spearman": 0.9}),
    ]
    assert gain_over_mismatch(LAYOUT, perfect, BLOCK) is None
    assert "gain_over_mismatch-balanced" in draw_all(LAYOUT, records)


def test_loss_and_metric_of_fig_1():
    other = PATHS | {"path_loss_loss": [9.0, 9.0, 9.0]}
    records = [
        _record("metricopt-literal", [0.1], notes=other),
        _record("metricopt", [0.1], notes=PATHS),
        _record("metricopt", [0.1], column="torn"),
    ]
    figure = loss_and_metric(LAYOUT, records, BLOCK)
    left, right = figure.axes
    # The last cost is unknown, and so all of its step is left out.
    assert lines_of(left) == {
        "loss, loss only": [[5.0, 0.9], [15.0, 0.8]],
        "loss, with the value function": [[5.0, 0.9], [15.0, 0.85]],
    }
    assert lines_of(right) == {
        "cost, loss only": [[5.0, 0.5], [15.0, 0.45]],
        "cost, with the value function": [[5.0, 0.5], [15.0, 0.4]],
    }
    assert left.get_ylabel() == "training loss (dashed)"
    assert right.get_ylabel() == "cost on observe (solid)"
    assert left.get_title() == "served ↓"
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 4
    # All its notes are needed.
    partial = {name: values for name, values in PATHS.items() if "guided" not in name}
    records = [_record("metricopt", [0.1], notes=partial)]
    assert loss_and_metric(LAYOUT, records, BLOCK) is None


def test_the_title_over_few_panels_has_two_lines():
    records = [
        _record("metricopt", [0.1], column=column.name, notes=PATHS)
        for column in LAYOUT.columns
    ]
    for count, gap in ((1, "\n"), (2, "\n"), (3, " ")):
        figure = loss_and_metric(LAYOUT, records[:count], BLOCK)
        expected = f"Three columns{gap}(Balanced): loss and metric"
        assert figure.get_suptitle() == expected


def test_columns_of_another_metric_of_the_same_runs_have_no_panel_of_notes():
    other = Column("other", "macro F", Unit("f-macro"), runs="served")
    layout = dataclasses.replace(LAYOUT, columns=(*LAYOUT.columns, other))
    also = (Unit("f-macro"),)
    record = _record("metricopt", [0.1], notes=PATHS, also=also)
    record = dataclasses.replace(record, test=record.test | {"f-macro": (0.8,)})
    assert layout.reading(other).finished(record)
    left, _ = loss_and_metric(layout, [record], BLOCK).axes
    assert left.get_title() == "served ↓"


def test_query_curves_show_an_arm_known_at_its_end_alone_as_a_point():
    records = [_record("metricopt", [0.1, 0.3], queries=90)]
    (panel,) = query_curves(LAYOUT, records, BLOCK).axes
    (test,) = panel.containers
    assert test.get_label() == "MetricOpt"
    assert test[0].get_xydata().tolist() == [[90.0, pytest.approx(0.2)]]


def test_query_curves_of_one_meta_test_reach_all_queries():
    trace = ((0, 1, [0.21], [0.20]), (0, 90, [0.16], [0.15]))
    searches = ((0, 10, [0.2, 0.2], [0.2, 0.3]), (0, 99, None, [0.1, 0.1]))
    records = [
        _record("offsets", [0.15], trace=trace, queries=1200),
        _record("cma-es", [0.1, 0.1], trace=searches, queries=99),
    ]
    (panel,) = query_curves(LAYOUT, records, BLOCK).axes
    lines = lines_of(panel)
    assert lines["offsets"] == [[1, 0.20], [90, 0.15], [1200, 0.15]]
    assert [y for _, y in lines["CMA-ES"]] == pytest.approx([0.25, 0.1])
    bands = [band.get_datalim(panel.transData) for band in panel.collections]
    spread = 0.1 / np.sqrt(2)
    assert bands[0].y0 == pytest.approx(0.1)
    assert bands[0].y1 == pytest.approx(0.25 + spread)
    assert (bands[1].y0, bands[1].y1) == pytest.approx((0.15, 0.20))


@pytest.mark.parametrize("count", [1, 8, 9, 40, 100])
def test_any_number_of_arms_looks_different_and_can_be_drawn(count):
    names = [*FIXED_ROWS, *(f"arm-{number}" for number in range(100))][:count]
    layout = dataclasses.replace(
        LAYOUT,
        rows=tuple(make_row(name, name.title()) for name in names),
        loss_only_row=None,
        mismatch_rows=(),
    )
    looks = row_styles(layout)
    assert len(set(looks.values())) == len(looks) == count
    records = [_record(name, [0.1], queries=90) for name in names]
    (panel,) = query_curves(layout, records, BLOCK).axes
    assert len(panel.containers) == count


def test_a_further_fixed_arm_gets_the_next_look(monkeypatch):
    more = (*FIXED_ROWS, "class-offsets")
    monkeypatch.setattr("benchmarks.report.figures.panels.FIXED_ROWS", more)
    rows = tuple(make_row(name) for name in (*more, "free"))
    layout = dataclasses.replace(LAYOUT, rows=rows, mismatch_rows=())
    looks = row_styles(layout)
    assert [looks[name] for name in more] == list(map(look, range(len(more))))
    assert looks["free"] == look(len(more))


def test_arms_look_the_same_in_every_experiment():
    looks = row_styles(LAYOUT)
    colours = {"MetricOpt": "#0072B2", "CMA-ES": "#D55E00"}
    colours |= {"loss only": "#999999", "offsets": "#009E73"}
    for label, colour in colours.items():
        assert looks[label] == (colour, "-", "o")

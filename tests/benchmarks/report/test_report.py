import dataclasses
import io

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

import benchmarks.report.figures.query_curves as curves_drawn
from benchmarks.report.figures.ablations import ablation_rows, ablation_scatter
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.panels import row_styles, to_png
from benchmarks.report.figures.query_curves import cost_curves, query_curves
from benchmarks.report.figures.value_functions import (
    embedding_tsne,
    predicted_against_true,
)
from benchmarks.report.page import build, terminal_page, write_report
from benchmarks.runs.record import VALUE_FUNCTION
from benchmarks.runs.store import read_jsonl
from metricopt.errors import DataError
from tests.benchmarks.report.page_cases import BLOCK, LAYOUT, RECORDS
from tests.benchmarks.report.report_cases import (
    ARMS,
    lines_of,
    make_arm,
    make_record,
    make_row,
    page_of,
)

DRAWN = ("ablation_rows", "ablation_scatter", "cost_curves", "embedding_tsne")
DRAWN += ("predicted_against_true", "query_curves")
TEXTS = ["records.jsonl", "table.csv", "table.md", "table.tex", "time.md"]


@pytest.fixture(scope="module")
def contents():
    return build(LAYOUT, RECORDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("report")
    (found / "embedding_tsne-old.png").write_bytes(b"")
    write_report(LAYOUT, list(reversed(RECORDS)), found)
    return found


def test_report_writes_its_files_and_removes_stale_figures(folder, contents):
    names = sorted(path.name for path in folder.iterdir())
    assert names == [*(f"{name}-balanced.png" for name in DRAWN), *TEXTS]
    assert read_jsonl(folder / "records.jsonl")[0].spec.row == "loss-only"
    for name, content in contents.items():
        assert (folder / name).read_bytes() == content


def test_page_says_what_it_shows(contents):
    page = contents["table.md"].decode()
    for line in (
        "- Tier: local",
        "- Data: a9a-sample (A9A MCR)",
        "- Convention: class 1 is positive at threshold 0.5",
        "- Tested against loss only: threshold shift; MetricOpt.",
        "- A9A JAC: not comparable with the paper: another index",
        "- Balanced, threshold shift, A9A MCR: diverged 1/4: the loss was nan at 7",
        "![cost_curves-balanced.png](cost_curves-balanced.png)",
        "### Balanced, A9A MCR ↓",
        "## Beside Table 3",
    ):
        assert line in page.splitlines()
    assert ".1700±.0090 (3) +" in page
    assert "73 % (rho 0.85 / 0.60)" in page
    assert "\n## Natural" not in page


def test_page_without_a_threshold_shift_shows_the_value_functions():
    layout = dataclasses.replace(LAYOUT, threshold_shift_row=None)
    notes = {"spearman_loss": [0.9, 0.8], "spearman_guided": 0.6}
    records = [*ARMS, *make_arm("metricopt-q50", [0.2, 0.3], notes=notes)]
    page = page_of(layout, records)
    assert "## Gap closed" not in page
    assert "in noise" not in page
    after = page.split("\n## Value functions\n")[1]
    assert after.lstrip().startswith("`rho`: Spearman correlations of the value")
    assert "| rho 0.85 / 0.60 " in after


def test_clock_order_and_settings_of_the_user_change_neither_tables_nor_figures(
    contents,
):
    slow = [dataclasses.replace(r, seconds={"search": 99.0}) for r in RECORDS]
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        again = build(LAYOUT, slow[::-1])
    assert again.keys() == contents.keys()
    changed = {name for name in contents if contents[name] != again[name]}
    assert changed == {"time.md"}


def test_a_terminal_shows_the_tables_and_where_the_rest_is(folder, contents):
    shown = terminal_page(folder)
    page = contents["table.md"].decode()
    assert shown.startswith(page[:300])
    assert "## Gap closed" in shown
    for heading in ("## At equal queries", "## Figures", "## Notes"):
        assert heading in page
        assert heading not in shown
    last = f"The whole report, with figures and notes: {folder / 'table.md'}"
    assert shown.splitlines()[-2:] == ["", last]


def test_the_training_of_value_functions_is_told_apart(contents):
    assert "value function" not in contents["time.md"].decode()
    told = {VALUE_FUNCTION: 7.0, "total": 9.0}
    text = build(LAYOUT, make_arm("metricopt", [0.2], seconds=told))["time.md"].decode()
    assert "`value function s`: seconds spent training the value function" in text
    assert " value function s |" in text


def test_records_of_another_experiment_write_nothing(tmp_path):
    with pytest.raises(DataError, match="expected records of 'fig1', got 'table3'"):
        write_report(
            dataclasses.replace(LAYOUT, experiment="fig1"), RECORDS, tmp_path / "x"
        )
    assert not (tmp_path / "x").exists()


def test_png_is_deterministic_and_free_of_metadata(contents):
    drawn = contents["cost_curves-balanced.png"]
    assert drawn == to_png(cost_curves(LAYOUT, RECORDS, BLOCK))
    assert b"matplotlib" not in drawn.lower()
    assert b"tEXt" not in drawn
    pixels = imread(io.BytesIO(drawn))
    assert np.unique(pixels.reshape(-1, 4), axis=0).shape[0] > 10


def test_cost_curves_show_the_mean_of_every_arm_with_a_trace():
    figure = cost_curves(LAYOUT, RECORDS, BLOCK)
    (panel,) = figure.axes
    lines = lines_of(panel)
    assert set(lines) == {"loss only", "MetricOpt"}
    assert [y for _, y in lines["MetricOpt"]] == pytest.approx([0.3, 0.28, 0.26])
    assert panel.get_ylabel() == "A9A MCR\n(fraction, lower is better)"
    assert panel.get_title() == "A9A MCR ↓"
    # Curves over queries leave out zero queries.
    (panel,) = query_curves(LAYOUT, RECORDS, BLOCK).axes
    assert panel.get_xscale() == "log"
    assert [x for x, _ in lines_of(panel)["loss only"]] == [5, 10]


def test_many_cost_curves_have_bars_of_their_ends_side_by_side(monkeypatch):
    monkeypatch.setattr(curves_drawn, "MOST_BANDS", 1)
    (panel,) = cost_curves(LAYOUT, RECORDS, BLOCK).axes
    ends = [container[0].get_xydata()[0] for container in panel.containers]
    lines = lines_of(panel)
    last = [lines[label][-1] for label in ("loss only", "MetricOpt")]
    assert [y for _, y in ends] == pytest.approx([y for _, y in last])
    assert last[0][0] < ends[0][0] < ends[1][0]
    _, named = panel.get_legend_handles_labels()
    assert named == ["loss only", "MetricOpt"]


def test_scatter_leaves_out_missing_pairs():
    (panel,) = predicted_against_true(LAYOUT, RECORDS, BLOCK).axes
    clouds = {dots.get_label(): dots.get_offsets() for dots in panel.collections[::2]}
    assert set(clouds) == {"MetricOpt", "MetricOpt, 50 queries"}
    assert len(clouds["MetricOpt"]) == 3 * 2
    np.testing.assert_allclose(clouds["MetricOpt"][:2], [[0.1, 0.1], [0.2, 0.3]])


def test_predictions_beyond_the_panel_are_hollow_at_its_edge():
    notes = {"health_true": [0.1, 0.2], "health_predicted": [0.1, 9.0]}
    records = [make_record("metricopt", 0, [0.1], notes=notes)]
    (panel,) = predicted_against_true(LAYOUT, records, BLOCK).axes
    inside, beyond = panel.collections
    np.testing.assert_allclose(inside.get_offsets(), [[0.1, 0.1]])
    np.testing.assert_allclose(beyond.get_offsets(), [[0.2, 0.3]])
    assert len(inside.get_facecolors()) and not len(beyond.get_facecolors())


def test_embedding_shows_the_first_row_that_has_one():
    panel = embedding_tsne(LAYOUT, RECORDS, BLOCK).axes[0]
    (dots,) = panel.collections
    np.testing.assert_allclose(dots.get_offsets(), [[0, 0], [1, 1], [2, 0]])
    np.testing.assert_allclose(dots.get_array(), [0.1, 0.2, 0.3])


def test_ablation_shows_error_against_final_metric():
    figure = ablation_scatter(LAYOUT, RECORDS, BLOCK)
    (panel,) = figure.axes
    where = "along guided steps, as a cost"
    assert panel.get_xlabel() == f"error of the value function\n{where}"
    points = {
        container.get_label(): container[0].get_xydata()[0]
        for container in panel.containers
    }
    np.testing.assert_allclose(points["MetricOpt"], [0.0, 0.17])
    np.testing.assert_allclose(points["MetricOpt, 50 queries"], [0.1, 0.175])


def test_ablated_rows_are_named_and_loss_only_is_a_line():
    plain = dataclasses.replace(LAYOUT, ablation_rows=())
    assert ablation_rows(plain, RECORDS, BLOCK) is None
    layout = dataclasses.replace(LAYOUT, ablation_rows=("metricopt", "shift"))
    records = [*make_arm("loss-only", [0.2, 0.3]), *make_arm("metricopt", [0.1, 0.2])]
    (panel,) = ablation_rows(layout, records, BLOCK).axes
    names = [text.get_text() for text in panel.get_yticklabels()]
    assert names == ["loss only", "MetricOpt"]
    (container,) = panel.containers
    np.testing.assert_allclose(container[0].get_xydata(), [[0.25, 0], [0.15, 1]])
    np.testing.assert_allclose(panel.get_lines()[-1].get_xdata(), [0.25, 0.25])


def test_figures_without_data_are_none_and_every_row_looks_different():
    assert draw_all(LAYOUT, make_arm("loss-only", [0.2, 0.3])) == {}
    looks = row_styles(LAYOUT)
    assert len(set(looks.values())) == len(looks) == len(LAYOUT.rows)


def test_the_figure_of_ablated_rows_gets_higher_with_them():
    names = [f"row-{number}" for number in range(30)]
    layout = dataclasses.replace(
        LAYOUT,
        rows=(*LAYOUT.rows, *(make_row(name) for name in names)),
        ablation_rows=tuple(names),
    )
    records = [make_record(name, 0, [0.1]) for name in ("loss-only", *names)]
    few = ablation_rows(layout, records[:3], BLOCK)
    many = ablation_rows(layout, records, BLOCK)
    assert few.get_figheight() == 5.0
    assert many.get_figheight() == pytest.approx(0.21 * 31 + 1.7)

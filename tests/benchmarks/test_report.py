import dataclasses
import io

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks import figures, figures_ablation
from benchmarks.panels import arm_styles, to_png
from benchmarks.records import VALUE_FUNCTION, read_jsonl
from benchmarks.report import build, write_report
from benchmarks.verify import verify
from metricopt.errors import DataError
from tests.benchmarks.report_cases import LAYOUT, make_arm, make_record

BLOCK = LAYOUT.blocks[0]
LAYOUT = dataclasses.replace(LAYOUT, ablation_rows=("metricopt", "metricopt-q50"))


def _trace(final):
    return [
        {"step": t, "queries": 5 * t, "observe": [final], "test": [0.3 - t * final]}
        for t in range(3)
    ]


def _notes(shift):
    return {
        "spearman": [0.9, 0.8],
        "health_true": [0.1, 0.2, None],
        "health_predicted": [0.1 + shift, 0.3, 0.4],
        "embedding_x": [0.0, 1.0, 2.0],
        "embedding_y": [shift, 1.0, 0.0],
        "embedding_cost": [0.1, 0.2, 0.3],
        "value_error": shift,
    }


RECORDS = [
    *make_arm("loss-only", [0.20, 0.22, 0.21], trace=_trace(0.01)),
    *make_arm("shift", [0.15, 0.16, 0.155], seconds={"search": 1.5}),
    *make_arm("metricopt", [0.161, 0.179, 0.170], trace=_trace(0.02), notes=_notes(0)),
    *make_arm("metricopt-q50", [0.17, 0.18, 0.175], queries=50, notes=_notes(0.1)),
    make_record("shift", 3, [], status="diverged", message="the loss was\nnan at 7"),
]
NAMES = [
    "ablation_rows-balanced.png",
    "ablation_scatter-balanced.png",
    "cost_curves-balanced.png",
    "embedding_tsne-balanced.png",
    "predicted_against_true-balanced.png",
    "query_curves-balanced.png",
    "records.jsonl",
    "table.csv",
    "table.md",
    "table.tex",
    "time.md",
]


@pytest.fixture(scope="module")
def contents():
    return build(LAYOUT, RECORDS)


@pytest.fixture
def folder(tmp_path, contents):
    (tmp_path / "embedding_tsne-old.png").write_bytes(b"")
    write_report(LAYOUT, list(reversed(RECORDS)), tmp_path)
    return tmp_path


def test_report_writes_its_files_and_removes_stale_figures(folder, contents):
    assert sorted(path.name for path in folder.iterdir()) == NAMES
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
    assert "73 % (rho 0.85)" in page
    assert "\n## Natural" not in page


def test_page_without_a_threshold_shift_shows_the_value_functions():
    layout = dataclasses.replace(LAYOUT, threshold_shift_row=None)
    page = build(layout, RECORDS)["table.md"].decode()
    assert "## Gap closed" not in page
    assert "in noise" not in page
    after = page.split("\n## Value functions\n")[1]
    assert after.lstrip().startswith("`rho`: Spearman correlation of the value")
    assert "| rho 0.85 " in after


def test_tables_do_not_depend_on_the_clock_or_the_order(contents):
    slow = [dataclasses.replace(r, seconds={"search": 99.0}) for r in RECORDS]
    again = build(LAYOUT, slow[::-1])
    changed = {name for name in contents if contents[name] != again[name]}
    assert changed == {"time.md"}


def test_the_training_of_value_functions_is_told_apart():
    text = build(LAYOUT, RECORDS)["time.md"].decode()
    assert "value function" not in text
    told = {VALUE_FUNCTION: 7.0, "total": 9.0}
    records = [dataclasses.replace(r, seconds=told) for r in RECORDS]
    text = build(LAYOUT, records)["time.md"].decode()
    assert "`value function s`: the training of the one a row uses" in text
    assert " value function s |" in text


def test_user_settings_do_not_change_figures(contents):
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        again = build(LAYOUT, RECORDS)
    assert again == contents


def test_verify_passes_what_was_written(folder):
    assert verify(LAYOUT, folder) == []


def test_verify_finds_a_changed_digit(folder):
    path = folder / "table.md"
    text = path.read_text()
    line = text[: text.index(".1700±")].count("\n") + 1
    path.write_text(text.replace(".1700±", ".1600±", 1))
    (problem,) = verify(LAYOUT, folder)
    assert problem.startswith(f"{path} line {line} column ")
    assert ".1700±" in problem
    assert ".1600±" in problem


def test_verify_finds_a_changed_record(folder):
    path = folder / "records.jsonl"
    path.write_text(path.read_text().replace("0.178", "0.177", 1))
    problems = verify(LAYOUT, folder)
    assert any("table.csv line" in problem for problem in problems)
    path.write_text(path.read_text().replace("\n", "\n\n", 1))
    assert verify(LAYOUT, folder) == [
        f"{path} line 2: no complete record: Expecting value: line 2 column 1 (char 1)"
    ]


def test_verify_finds_missing_stale_and_shortened_files(folder):
    (folder / "table.tex").unlink()
    (folder / "old.png").write_bytes(b"")
    path = folder / "time.md"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-2]))
    assert verify(LAYOUT, folder) == [
        f"{folder / 'table.tex'} is missing",
        f"{path} has {len(lines) - 2} lines, expected {len(lines)}",
        f"{folder / 'old.png'} is no file of this report",
    ]


def test_verify_compares_pixels_not_bytes(folder):
    from PIL import Image

    path = folder / "cost_curves-balanced.png"
    image = Image.open(path).copy()
    image.save(path, compress_level=1, pnginfo=None)
    assert verify(LAYOUT, folder) == []
    image.paste((255, 0, 0, 255), (0, 0, 60, 60))
    image.save(path)
    (problem,) = verify(LAYOUT, folder)
    assert "differs in 3600 of" in problem
    assert problem.endswith("first in row 0, column 0")
    path.write_bytes(b"no image")
    (problem,) = verify(LAYOUT, folder)
    assert "is no readable PNG" in problem


def test_verify_reports_a_folder_without_records(tmp_path):
    (problem,) = verify(LAYOUT, tmp_path)
    assert problem.endswith("there is no such file")


def test_records_of_another_experiment_write_nothing(tmp_path):
    with pytest.raises(DataError, match="expected records of 'fig1', got 'table3'"):
        write_report(
            dataclasses.replace(LAYOUT, experiment="fig1"), RECORDS, tmp_path / "x"
        )
    assert not (tmp_path / "x").exists()


def test_png_is_deterministic_and_free_of_metadata():
    first, second = (
        to_png(figures.cost_curves(LAYOUT, RECORDS, BLOCK)) for _ in range(2)
    )
    assert first == second
    assert b"matplotlib" not in first.lower()
    assert b"tEXt" not in first
    pixels = imread(io.BytesIO(first))
    assert np.unique(pixels.reshape(-1, 4), axis=0).shape[0] > 10


def test_cost_curves_show_the_mean_of_every_arm_with_a_trace():
    figure = figures.cost_curves(LAYOUT, RECORDS, BLOCK)
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert set(lines) == {"loss only", "MetricOpt"}
    np.testing.assert_allclose(lines["MetricOpt"].get_ydata(), [0.3, 0.28, 0.26])
    assert panel.get_ylabel() == "A9A MCR\n(fraction, lower is better)"
    assert panel.get_title() == "A9A MCR ↓"


def test_query_curves_leave_out_zero_queries():
    (panel,) = figures.query_curves(LAYOUT, RECORDS, BLOCK).axes
    lines = {line.get_label(): line.get_xdata() for line in panel.get_lines()}
    assert panel.get_xscale() == "log"
    np.testing.assert_array_equal(lines["loss only"], [5, 10])


def test_scatter_leaves_out_missing_pairs():
    (panel,) = figures.predicted_against_true(LAYOUT, RECORDS, BLOCK).axes
    clouds = {dots.get_label(): dots.get_offsets() for dots in panel.collections[::2]}
    assert set(clouds) == {"MetricOpt", "MetricOpt, 50 queries"}
    assert len(clouds["MetricOpt"]) == 3 * 2
    np.testing.assert_allclose(clouds["MetricOpt"][:2], [[0.1, 0.1], [0.2, 0.3]])


def test_predictions_beyond_the_panel_are_hollow_at_its_edge():
    notes = {"health_true": [0.1, 0.2], "health_predicted": [0.1, 9.0]}
    records = [make_record("metricopt", 0, [0.1], notes=notes)]
    (panel,) = figures.predicted_against_true(LAYOUT, records, BLOCK).axes
    inside, beyond = panel.collections
    np.testing.assert_allclose(inside.get_offsets(), [[0.1, 0.1]])
    np.testing.assert_allclose(beyond.get_offsets(), [[0.2, 0.3]])
    assert len(inside.get_facecolors()) and not len(beyond.get_facecolors())


def test_embedding_shows_the_first_row_that_has_one():
    panel = figures.embedding_tsne(LAYOUT, RECORDS, BLOCK).axes[0]
    (dots,) = panel.collections
    np.testing.assert_allclose(dots.get_offsets(), [[0, 0], [1, 1], [2, 0]])
    np.testing.assert_allclose(dots.get_array(), [0.1, 0.2, 0.3])


def test_ablation_shows_error_against_final_metric():
    figure = figures_ablation.ablation_scatter(LAYOUT, RECORDS, BLOCK)
    (panel,) = figure.axes
    assert panel.get_xlabel() == "error of the value function, as a cost"
    points = {
        container.get_label(): container[0].get_xydata()[0]
        for container in panel.containers
    }
    np.testing.assert_allclose(points["MetricOpt"], [0.0, 0.17])
    np.testing.assert_allclose(points["MetricOpt, 50 queries"], [0.1, 0.175])


def test_ablated_rows_are_named_and_loss_only_is_a_line():
    plain = dataclasses.replace(LAYOUT, ablation_rows=())
    assert figures_ablation.ablation_rows(plain, RECORDS, BLOCK) is None
    layout = dataclasses.replace(LAYOUT, ablation_rows=("metricopt", "shift"))
    records = [*make_arm("loss-only", [0.2, 0.3]), *make_arm("metricopt", [0.1, 0.2])]
    (panel,) = figures_ablation.ablation_rows(layout, records, BLOCK).axes
    names = [text.get_text() for text in panel.get_yticklabels()]
    assert names == ["loss only", "MetricOpt"]
    (container,) = panel.containers
    np.testing.assert_allclose(container[0].get_xydata(), [[0.25, 0], [0.15, 1]])
    np.testing.assert_allclose(panel.get_lines()[-1].get_xdata(), [0.25, 0.25])


def test_figures_without_data_are_none():
    plain = make_arm("loss-only", [0.2, 0.3])
    assert figures.draw_all(LAYOUT, plain) == {}


def test_every_row_looks_different():
    looks = arm_styles(LAYOUT)
    assert len(set(looks.values())) == len(looks) == len(LAYOUT.rows)

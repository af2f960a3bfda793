"""What learners reach on new tasks, task by task, on hand-written records."""

from dataclasses import replace
from math import sqrt
from statistics import mean, stdev

import pytest
from scipy.stats import ttest_rel

from benchmarks.report.columns import Column
from benchmarks.report.figures.adaptation import adaptation
from benchmarks.report.figures.task_errors import task_errors
from benchmarks.report.layout import Block, OverTasks, TableLayout
from benchmarks.report.page import build
from benchmarks.rows.contract import Row
from benchmarks.runs.notes import (
    GRADIENT_NORM,
    INNER_STEPS,
    META_PARAMETERS,
    QUERY_ACCURACY,
    QUERY_STEPS,
    SUPPORT_LOSS,
    TASK_DIVERGED,
    TRAINED_STEPS,
)
from benchmarks.runs.spec import Arm, Unit
from metricopt.errors import ConfigError
from tests.benchmarks.runs.record_cases import make_record, make_spec

ACCURACY, ERROR = Unit("task-accuracy"), Unit("squared-error")
BLOCK = Block("new-tasks", "new tasks")
VALUES = {
    "maml": ([0.50, 0.60, 0.40, 0.70], [0.50, 0.30, 0.60, 0.40]),
    "mirror": ([0.60, 0.80, 0.50, 0.76], [0.55, 0.45, 0.70, 0.50]),
}
"""Accuracies of the tasks of two replicates."""


def layout(**changes):
    usual = {
        **{"experiment": "few-shot", "title": "Few-shot", "caption": "Caption."},
        "convention": "None.",
        "blocks": (BLOCK,),
        "rows": (
            Row("maml", "MAML", "learners", same_starts=True),
            Row("mirror", "mirror", "learners", base_row="maml", same_starts=True),
        ),
        "columns": (Column("omniglot", "Omniglot", ACCURACY),),
        "query_budgets": (),
        "over_tasks": OverTasks(("mirror",), ("maml",), reach="maml"),
    }
    return TableLayout(**usual | changes)


def records(notes=None, diverged=0.0, replicates=(0, 1), metric=ACCURACY):
    found = []
    for row, both in VALUES.items():
        for replicate in replicates:
            own = both[replicate]
            spec = make_spec(
                row,
                replicate,
                column="omniglot",
                experiment="few-shot",
                block=BLOCK.name,
                metric=metric,
                also=(Unit(TASK_DIVERGED),),
                arm=Arm("learner", row),
                meta_tests=4,
            )
            several = len(own) // 4
            told = {metric.name: own, TASK_DIVERGED: [diverged, 0, 0, 0] * several}
            noted = {META_PARAMETERS: 1_234} | (notes or {}).get((row, replicate), {})
            found.append(make_record(spec, test=told, observe={}, notes=noted))
    return found


def page(*given, **changes):
    return build(layout(**changes), records(*given))["table.md"].decode()


def lines_of(text, heading):
    _, _, rest = text.partition(f"{heading}\n")
    part = rest.partition("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in part.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows][2:]


def test_means_and_intervals_are_over_all_tasks():
    text = page(None, 1.0)
    (maml, mirror) = lines_of(text, "## New tasks")
    values = [value for own in VALUES["mirror"] for value in own]
    half = 1.959964 * stdev(values) / sqrt(8)
    expected = [f"{number:.4f}".removeprefix("0") for number in (mean(values), half)]
    assert mirror[1:] == ["mirror", "±".join(expected), "8", "1,234", "2"]
    assert maml[1] == "MAML"
    assert "queries" not in text.partition("## New tasks")[0]
    assert "each with first weights and tasks of its own" in text


def test_rows_are_paired_task_by_task():
    (line,) = lines_of(page(), "## Task by task")
    first, second = (
        [value for own in VALUES[row] for value in own] for row in ("mirror", "maml")
    )
    test = ttest_rel(first, second)
    gain = f"+{mean(first) - mean(second):.4f}".replace("0.", ".")
    assert line[1:5] == ["mirror", "MAML", "8", gain]
    low, high = test.confidence_interval()
    assert line[5] == f"+{low:.4f} to +{high:.4f}".replace("0.", ".")
    assert test.pvalue < 0.001 and line[6:] == ["<.001", "better"]


def test_several_optimizers_of_a_run_count_with_their_mean_on_a_task(monkeypatch):
    expected = lines_of(page(), "## Task by task")
    # Of the second one, values follow those of the first.
    off = (0.04, -0.03, 0.02, 0.01)
    for row, values in VALUES.items():
        both = [
            [v + d for v, d in zip(own, off, strict=True)]
            + [v - d for v, d in zip(own, off, strict=True)]
            for own in values
        ]
        monkeypatch.setitem(VALUES, row, both)
    found = [
        replace(record, spec=replace(record.spec, value_functions=2))
        for record in records()
    ]
    text = build(layout(), found)["table.md"].decode()
    assert lines_of(text, "## Task by task") == expected


def test_optimizers_are_no_learners():
    compared = OverTasks(("mirror",), ("maml",), learners=False)
    text = page(over_tasks=compared)
    assert lines_of(text, "## Task by task") == lines_of(page(), "## Task by task")
    assert "## New tasks" not in text and "queries" in text


def test_without_a_difference_nothing_is_shown(monkeypatch):
    monkeypatch.setitem(VALUES, "mirror", VALUES["maml"][::-1])
    (line,) = lines_of(page(), "## Task by task")
    assert line[4] == "+.0000" and line[7] == "not shown"


def course(accuracies, losses=(2.0, 1.0, 0.5)):
    return {
        TRAINED_STEPS: 2,
        INNER_STEPS: [0, 1, 2],
        SUPPORT_LOSS: list(losses),
        GRADIENT_NORM: [3.0, 2.0, 1.0],
        QUERY_STEPS: [0, 1, 2],
        QUERY_ACCURACY: list(accuracies),
    }


COURSES = {
    ("maml", 0): course((0.2, 0.4, 0.5)),
    ("maml", 1): course((0.2, 0.5, 0.4)),
    ("mirror", 0): course((0.3, 0.5, 0.6)),
    ("mirror", 1): course((0.1, 0.2, 0.3)),
}


def test_steps_to_the_accuracy_of_maml_are_counted_by_replicate():
    text = page(COURSES)
    maml, mirror = lines_of(text, "## Inner steps to the accuracy of MAML")
    assert maml[1:] == ["MAML", "2, 1", ".5000±.0000", "1.5"]
    assert mirror[1:] == ["mirror", "1, ·", ".4500±.2121", "2.0"]
    assert "after the 2 steps of its meta-training" in text
    assert "## Inner steps" not in page()


def test_the_figure_shows_losses_norms_and_accuracies():
    found = records(COURSES)
    figure = adaptation(layout(), found, BLOCK)
    losses, norms, accuracies = figure.axes
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log", "linear"]
    drawn = {line.get_label(): line.get_ydata() for line in accuracies.get_lines()}
    assert list(drawn["MAML"]) == pytest.approx([0.45, 0.45])
    assert list(drawn["mirror"]) == pytest.approx([0.35, 0.45])
    assert list(accuracies.get_lines()[0].get_xdata()) == [1, 2]
    expected = pytest.approx([2.0, 1.0, 0.5])
    assert list(losses.get_lines()[0].get_ydata()) == expected
    assert list(norms.get_lines()[0].get_ydata()) == pytest.approx([3.0, 2.0, 1.0])
    assert adaptation(layout(), records(), BLOCK) is None


def test_a_line_ends_where_half_of_the_tasks_diverge():
    given = COURSES | {("maml", 0): course((0.2, 0.4, 0.5), (2.0, float("inf"), 1.0))}
    losses, *_ = adaptation(layout(), records(given), BLOCK).axes
    lengths = {line.get_label(): len(line.get_ydata()) for line in losses.get_lines()}
    assert lengths == {"MAML": 1, "mirror": 3}


def test_errors_of_tasks_are_drawn_as_shares():
    columns = (Column("omniglot", "Waves", ERROR),)
    figure = task_errors(layout(columns=columns), records(metric=ERROR), BLOCK)
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert list(lines) == ["MAML", "mirror"]
    every = sorted(value for own in VALUES["mirror"] for value in own)
    assert list(lines["mirror"].get_xdata()) == every
    assert list(lines["mirror"].get_ydata()) == [place / 8 for place in range(1, 9)]
    assert panel.get_xscale() == "log"
    assert "lower is better" in panel.get_xlabel()


def test_accuracies_are_no_errors():
    assert task_errors(layout(), records(), BLOCK) is None
    columns = (Column("omniglot", "Waves", ERROR),)
    other = layout(columns=columns, over_tasks=None)
    assert task_errors(other, records(metric=ERROR), BLOCK) is None


def test_one_replicate_is_told_apart():
    text = build(layout(), records(replicates=(0,)))["table.md"].decode()
    assert "over the new tasks of one learner" in text
    assert ".6650±.1399 (4) +" in text


def test_other_tables_have_none_of_this():
    text = page(over_tasks=None)
    assert "## New tasks" not in text and "queries" in text


def test_rows_that_are_compared_are_those_of_the_table():
    with pytest.raises(ConfigError, match="refers to the row 'sgd' it lacks"):
        layout(over_tasks=OverTasks(("mirror",), ("sgd",)))

import pytest

from benchmarks.report.paper_values import (
    PAPER_VALUES,
    ROW_LABELS,
    find_paper_value,
    paper_rows,
)


def test_every_place_is_printed_once_and_has_a_label():
    places = [(v.table, v.row, v.column) for v in PAPER_VALUES]
    expected = 11 + 11 + 18 + 14 + 16 + 8 + 21 + 8 + 26 + 35
    assert len(set(places)) == len(places) == expected
    assert {v.row for v in PAPER_VALUES} == set(ROW_LABELS)
    assert {v.unit for v in PAPER_VALUES} == {"fraction"}


@pytest.mark.parametrize(
    ("table", "column", "rows", "values", "deviations"),
    [
        (
            "Table 1",
            "cifar10/mcr",
            "ce large-margin l2t-dlf moew ala blackbox dense metricopt-sgd "
            "metricopt-learned metricopt-sgd-large-margin "
            "metricopt-learned-large-margin",
            "7.51 7.01 6.95 6.71 6.79 6.84 7.19 6.63 6.58 6.56 6.47",
            "- - - 0.08 0.07 0.05 0.16 0.05 0.06 0.06 0.07",
        ),
        (
            "Table 2",
            "cifar10/aucpr",
            "ce aucroc aucpr moew ala blackbox dense metricopt-sgd metricopt-learned "
            "metricopt-sgd-aucpr metricopt-learned-aucpr",
            "84.6 94.2 94.2 94.6 94.9 94.4 90.8 95.7 96.2 96.6 97.2",
            "- - - 0.11 0.14 0.07 0.18 0.12 0.09 0.10 0.08",
        ),
    ],
)
def test_percent_of_tables_1_and_2(table, column, rows, values, deviations):
    assert paper_rows(table) == tuple(rows.split())
    printed = [find_paper_value(table, row, column) for row in rows.split()]
    assert [f"{100 * v.value:.4g}" for v in printed] == values.split()
    found = ["-" if v.std is None else f"{100 * v.std:.2f}" for v in printed]
    assert found == deviations.split()


def test_carried_numbers_say_so():
    noted = {v.row: v.note for v in PAPER_VALUES if v.table == "Table 2" and v.note}
    assert set(noted) == {"ce", "aucroc", "aucpr"}
    assert all("carried over" in note for note in noted.values())
    assert not any(v.note for v in PAPER_VALUES if v.table == "Table 1")


def test_table_3():
    assert paper_rows("Table 3") == ("ce", "lo", "cs", "sl", "metricopt")
    assert find_paper_value("Table 3", "sl", "cov/jac").value == 0.7808
    assert "legacy" in find_paper_value("Table 3", "metricopt", "a9a/jac").note
    assert find_paper_value("Table 3", "metricopt", "cov/f1").value == 0.8013
    assert find_paper_value("Table 3", "lo", "cov/f1") is None


def test_table_5():
    rows = ("fastap", "recall", "fastap+metricopt", "recall+metricopt")
    assert paper_rows("Table 5") == rows
    printed = [
        [
            100 * find_paper_value("Table 5", row, f"sop/recall@{k}").value
            for row in rows
        ]
        for k in (1, 10, 100, 1000)
    ]
    assert printed == [
        pytest.approx([76.4, 78.6, 79.6, 80.4]),
        pytest.approx([89.1, 90.5, 91.2, 91.8]),
        pytest.approx([95.4, 96.0, 96.3, 96.5]),
        pytest.approx([98.5, 98.7, 98.9, 99.0]),
    ]


def test_the_poster_on_mirror_descent():
    table = "Mirror descent, Table 1"
    shots = [f"miniimagenet/5-way-{k}-shot" for k in (1, 5)]
    rows = {
        row: [find_paper_value(table, row, column) for column in shots]
        for row in paper_rows(table)
    }
    found = {row: [v and (v.value, v.std) for v in own] for row, own in rows.items()}
    assert found["mirror-descent"] == [(0.5610, 0.0143), (0.6959, 0.0071)]
    assert found["maml"] == [(0.4870, 0.0184), (0.6311, 0.0092)]
    assert found["mt-net"] == [(0.5170, 0.0184), None]
    assert found["meta-kfo"] == [None, (0.649, None)]


def test_table_3_of_ala_is_copied_right():
    """The triplet framework has no Recall@1000."""
    printed = {
        "triplet": (66.7, 82.4, 91.9),
        "margin+mixture": (78.9, 90.7, 96.5, 98.9),
        "margin+faces": (75.2, 89.2, 94.9, 98.4),
    }
    for row, values in printed.items():
        found = [
            find_paper_value("ALA Table 3", row, f"sop/recall@{k}")
            for k in (1, 10, 100, 1000)
        ]
        percent = [100 * each.value for each in found if each is not None]
        assert percent == pytest.approx(values)


def test_table_4_of_ala_is_copied_right():
    printed = {
        "rmsprop": (73.5, 91.5),
        "powersign-cd": (73.9, 91.9),
        "ala-cifar10": (74.3, 92.1),
        "ala": (74.6, 92.6),
    }
    assert paper_rows("ALA Table 4") == tuple(printed)
    for row, values in printed.items():
        found = [
            100 * find_paper_value("ALA Table 4", row, f"imagenet/top-{k}").value
            for k in (1, 5)
        ]
        assert found == pytest.approx(values)

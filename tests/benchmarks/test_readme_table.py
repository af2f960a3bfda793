import pytest

from benchmarks import readme_table
from benchmarks.experiment import find_experiment
from benchmarks.readme_table import BEGIN, END, first_table, readme_problems, rewritten
from benchmarks.records import write_jsonl
from metricopt.errors import DataError
from tests.benchmarks.report_cases import make_arm

LAYOUT = find_experiment("table3").layout("local")
TEXT = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe [licence](LICENSE) is MIT.\n"


def _trace(values):
    return [
        {"step": 0, "queries": queries, "observe": [value], "test": [value]}
        for queries, value in values.items()
    ]


@pytest.fixture
def records():
    searched = {"queries": 5000, "trace": _trace({50: 0.3, 1500: 0.2})}
    return [
        *make_arm("cross-entropy", [0.41, 0.43]),
        *make_arm("threshold-shift", [0.15], queries=700),
        *make_arm("cma-es", [0.1, 0.2], **searched),
        *make_arm("metricopt", [0.16, 0.18], queries=4900),
        *make_arm("metricopt-q150", [0.17, 0.21, 0.19], queries=150),
        *make_arm("cma-es", [0.6, 0.7], column="a9a/f1", queries=50),
        *make_arm("cma-es", [0.5], column="a9a/mcr", block="natural", queries=50),
    ]


@pytest.fixture
def project(tmp_path, records):
    """A folder with a README, what it links to, and committed records."""
    results = tmp_path / "results"
    write_jsonl(results / "table3" / "local" / "records.jsonl", records)
    (tmp_path / "LICENSE").touch()
    readme = tmp_path / "README.md"
    readme.write_text(rewritten(TEXT, first_table(LAYOUT, records)))
    return results, readme


def _rows(table):
    lines = [line.strip("| ").split("|") for line in table.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    return {(metric, method): values for metric, method, *values in cells}


def test_rows_by_hand(records):
    rows = _rows(first_table(LAYOUT, records))
    error, f1 = "a9a MCR ↓", "a9a F ↑"
    budgets = ["50", "150", "500", "1,500", "5,000"]
    assert rows["metric", "after"] == [f"{queries} queries" for queries in budgets]
    metricopt = ["·", ".1900±.0200", "·", "·", ".1700±.0141"]
    assert rows[error, "MetricOpt (SGD)"] == metricopt
    held, final = ".3000±.0000", ".2000±.0000"
    assert rows[error, "CMA-ES"] == [held, held, held, final, final]
    assert rows[error, "random search"] == ["·"] * 5
    assert rows[f1, "CMA-ES"] == [".6500±.0707"] * 5
    assert rows[f1, "MetricOpt (SGD)"] == ["·"] * 5


def test_data_replicates_and_references_are_told(records):
    error, f1 = first_table(LAYOUT, records).splitlines()[-2:]
    assert error == (
        "- a9a MCR ↓ (a9a-sample, 3 replicates), to compare with: CE, untouched (phi = "
        "0) .4200±.0141; CE fine-tune, last step ·; CE fine-tune, dense eval ·; "
        "threshold shift .1500."
    )
    assert f1.startswith("- a9a F ↑ (a9a-sample, 2 replicates), to compare with: CE")


def test_a_table_without_runs_is_refused(records):
    with pytest.raises(DataError, match="no finished run of a search in 'a9a/mcr'"):
        first_table(LAYOUT, [r for r in records if "/f1" in r.spec.column])
    with pytest.raises(DataError, match="no finished run of a search in 'a9a/f1' yet"):
        first_table(LAYOUT, [r for r in records if "/mcr" in r.spec.column])


def test_only_the_block_is_rewritten():
    text = rewritten(TEXT, "new")
    assert text == TEXT.replace("\nold\n", "\n\nnew\n\n")
    assert rewritten(text, "new") == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END} {BEGIN}", TEXT + END, TEXT * 2])
def test_marks_must_be_there_once_and_in_order(text):
    with pytest.raises(DataError, match=f"README.md needs {BEGIN} and then {END}"):
        rewritten(text, "new")


def test_a_current_readme_has_no_problem(project):
    assert readme_problems(*project) == []


def test_an_old_number_and_a_dead_link_are_named(project):
    results, readme = project
    readme.write_text(readme.read_text().replace(".1900", ".1800"))
    (readme.parent / "LICENSE").unlink()
    assert readme_problems(results, readme) == [
        "README.md links to LICENSE, which does not exist",
        "the first table of README.md is not that of the records; "
        "run `python -m benchmarks.readme_table`",
    ]


def test_missing_records_are_named(project, tmp_path):
    (problem,) = readme_problems(tmp_path / "nowhere", project[1])
    assert "expected records in" in problem


def test_the_command_writes_what_the_check_accepts(project, monkeypatch, capsys):
    results, readme = project
    readme.write_text(TEXT)
    monkeypatch.setattr(readme_table, "ROOT", readme.parent)
    assert readme_table.main() == 0
    assert readme_problems(results, readme) == []
    readme.write_text("no marks")
    assert readme_table.main() == 2
    assert "README.md needs" in capsys.readouterr().err
    assert readme.read_text() == "no marks"

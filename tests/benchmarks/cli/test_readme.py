import pytest

from benchmarks.cli import readme
from benchmarks.cli.readme import TABLES, marks, readme_problems, rewritten
from benchmarks.runs.store import write_jsonl
from metricopt.errors import DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec

BEGIN, END = marks("first-table")
PAYS = "\n".join(marks("when-it-pays"))
TEXT = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe [licence](LICENSE) is MIT.\n{PAYS}\n"


def _record(experiment, row, column, test, **fields):
    place = {"experiment": experiment, "tier": "local"}
    spec = make_spec(row, 0, column=column, **place)
    return make_record(spec, test, data={"variant": "a sample"}, **fields)


@pytest.fixture
def records():
    return {
        "table1": [_record("table1", "cma-es", "cifar10/mcr", [0.1, 0.2])],
        "table2": [],
        "table3": [
            _record("table3", "cma-es", column, [value], queries=50)
            for column, value in (("a9a/mcr", 0.19), ("a9a/f1", 0.5))
        ],
        "mismatch": [
            _record("mismatch", "metricopt", "tail/f-macro", [0.7612]),
            _record("mismatch", "cma-es", "tail/f-macro", [None], status="diverged"),
        ],
    }


@pytest.fixture
def project(tmp_path, records):
    """A folder with a README, what it links to, and committed records."""
    results = tmp_path / "results"
    for name, own in records.items():
        write_jsonl(results / name / "local" / "records.jsonl", own)
    (tmp_path / "LICENSE").touch()
    text = TEXT
    for name, make in TABLES.items():
        text = rewritten(text, name, make(results))
    path = tmp_path / "README.md"
    path.write_text(text)
    return results, path


def test_where_it_pays_by_hand(records):
    lines = readme.pays_table(records).splitlines()
    rows = {}
    for line in lines:
        name, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        rows[name] = cells
    assert len(lines) == 2 + len(readme.PAYS_COLUMNS)
    assert rows["on test"] == list(readme.PAYS_ROWS.values())
    assert rows["cifar10 MCR ↓"] == ["·"] * 3 + [".1500±.0707", "·", "·"]
    assert rows["long tail, macro F ↑"] == ["·", "·", ".7612", "·", "·", "·"]


def test_only_the_block_is_rewritten():
    text = rewritten(TEXT, "first-table", "new")
    assert text == TEXT.replace("\nold\n", "\n\nnew\n\n")
    assert rewritten(text, "first-table", "new") == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END} {BEGIN}", TEXT + END, TEXT * 2])
def test_marks_must_be_there_once_and_in_order(text):
    with pytest.raises(DataError, match=f"README.md needs {BEGIN} and then {END}"):
        rewritten(text, "first-table", "new")


def test_a_current_readme_has_no_problem(project):
    assert readme_problems(*project) == []


def test_old_numbers_and_a_dead_link_are_named(project):
    results, path = project
    path.write_text(path.read_text().replace(".1900", ".1800").replace(".76", ".77"))
    (path.parent / "LICENSE").unlink()
    command = "run `python -m benchmarks.cli.readme`"
    assert readme_problems(results, path) == [
        "README.md links to LICENSE, which does not exist",
        f"the table first-table of README.md is not that of the records; {command}",
        f"the table when-it-pays of README.md is not that of the records; {command}",
    ]


def test_missing_records_are_named(project, tmp_path):
    problems = readme_problems(tmp_path / "nowhere", project[1])
    assert len(problems) == len(TABLES)
    assert all("expected records in" in problem for problem in problems)


def test_the_command_writes_what_the_check_accepts(project, monkeypatch, capsys):
    results, path = project
    path.write_text(TEXT)
    monkeypatch.setattr(readme, "ROOT", path.parent)
    assert readme.main() == 0
    assert readme_problems(results, path) == []
    path.write_text("no marks")
    assert readme.main() == 2
    assert "README.md needs" in capsys.readouterr().err
    assert path.read_text() == "no marks"


def test_the_first_table_is_of_the_committed_records(project):
    assert ".1900" in readme.committed_first_table(project[0])

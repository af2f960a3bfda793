import pytest

from benchmarks.cli import page_tables, pages
from benchmarks.cli.pages import current, marks, page_problems, rewritten, value
from benchmarks.runs.store import write_jsonl
from metricopt.errors import DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec

BEGIN, END = marks("first-table")
PAYS = "\n".join(marks("when-it-pays"))
ERROR = "<!-- value: table3 balanced a9a/mcr cma-es -->.2<!-- end -->"
TEXT = (
    f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe [licence](LICENSE) is MIT.\n{PAYS}\n{ERROR}"
)


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
def project(tmp_path, records, monkeypatch):
    """A folder with pages, what they link to, and committed records."""
    results = tmp_path / "results"
    for name, own in records.items():
        write_jsonl(results / name / "local" / "records.jsonl", own)
    (tmp_path / "LICENSE").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "more.md").write_text("the [licence](../LICENSE)")
    path = tmp_path / "README.md"
    path.write_text(current(TEXT, results))
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return path


def test_where_it_pays_by_hand(records):
    lines = page_tables.pays_table(records).splitlines()
    rows = {}
    for line in lines:
        name, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        rows[name] = cells
    assert len(lines) == 2 + len(page_tables.PAYS_COLUMNS)
    assert rows["on test"] == list(page_tables.PAYS_ROWS.values())
    assert rows["cifar10 MCR ↓"] == ["·"] * 4 + [".1500±.0707", "·", "·"]
    assert rows["long tail, macro F ↑"] == ["·", "·", "·", ".7612", "·", "·", "·"]


def test_only_the_block_is_rewritten():
    text = rewritten(TEXT, "first-table", "new")
    assert text == TEXT.replace("\nold\n", "\n\nnew\n\n")
    assert rewritten(text, "first-table", "new") == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END} {BEGIN}", TEXT + END, TEXT * 2])
def test_marks_must_be_there_once_and_in_order(text):
    with pytest.raises(DataError, match=f"the page needs {BEGIN} and then {END}"):
        rewritten(text, "first-table", "new")


def test_current_pages_have_no_problem(project):
    assert page_problems(project.parent) == []
    assert ".1900<!-- end -->" in project.read_text()


def test_old_numbers_and_a_dead_link_are_named(project):
    project.write_text(project.read_text().replace(".1900<", ".1800<"))
    (project.parent / "LICENSE").unlink()
    assert page_problems(project.parent) == [
        "README.md links to LICENSE, which does not exist",
        "the tables or numbers of README.md are not those of the records; run "
        "`python -m benchmarks.cli.pages`",
        "docs/more.md links to ../LICENSE, which does not exist",
    ]


def test_an_old_table_is_named(project):
    project.write_text(project.read_text().replace(".76", ".77"))
    (problem,) = page_problems(project.parent)
    assert "are not those of the records" in problem


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("table3 balanced a9a/mcr", "a value needs an experiment, a block, a column"),
        ("table3 balanced a9a/none cma-es", "no column 'a9a/none'; known: a9a/mcr"),
        ("table3 balanced a9a/mcr metricopt", "no finished run of 'table3 balanced"),
        ("table3 balanced a9a/mcr cma-es@10", "no finished run of 'table3 balanced"),
    ],
)
def test_a_wrong_value_is_named(project, what, message):
    with pytest.raises(DataError, match=message):
        value(project.parent / "results", what)


def test_a_value_is_the_mean_of_a_row_or_what_it_has_at_a_budget(project):
    results = project.parent / "results"
    assert value(results, "table3 balanced a9a/mcr cma-es") == ".1900"
    assert value(results, "table3 balanced a9a/f1 cma-es@50") == ".5000"
    assert value(results, "table1 balanced cifar10/mcr cma-es") == ".1500"


def test_missing_records_and_unknown_tables_are_named(project):
    with pytest.raises(DataError, match="expected records in"):
        current(TEXT, project.parent / "nowhere")
    with pytest.raises(DataError, match="unknown table 'own'; known: first-table"):
        current("\n".join(marks("own")), project.parent / "results")


def test_the_command_writes_what_the_check_accepts(project, capsys):
    project.write_text(TEXT)
    assert pages.main() == 0
    assert page_problems(project.parent) == []
    broken = f"{BEGIN} no end"
    project.write_text(broken)
    assert pages.main() == 2
    assert "error: README.md: the page needs" in capsys.readouterr().err
    assert project.read_text() == broken

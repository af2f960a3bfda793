"""Committed reports are rebuilt, and every difference is named."""

import dataclasses
import shutil

import pytest

from benchmarks.report.page import write_report
from benchmarks.report.verify import verify
from benchmarks.runs.store import write_jsonl
from tests.benchmarks.report import page_cases
from tests.benchmarks.report.report_cases import LAYOUT

# Without notes there are fewer figures to draw each time.
RECORDS = [dataclasses.replace(each, notes={}) for each in page_cases.RECORDS]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    write_report(LAYOUT, RECORDS, folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A report of its own for every test."""
    return shutil.copytree(written, tmp_path / "report")


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
    intact = path.read_text()
    number = intact[: intact.index("0.178")].count("\n") + 1
    path.write_text(intact.replace("0.178", "0.177", 1))
    (problem,) = verify(LAYOUT, folder)
    assert problem.startswith(f"{path} line {number}: the record was altered: ")
    path.write_text(intact.replace("\n", "\n\n", 1))
    (problem,) = verify(LAYOUT, folder)
    assert problem.startswith(f"{path} line 2: not a complete record: Expecting value")
    assert "restore it with git" in problem


def test_verify_finds_a_record_that_was_changed_with_its_digest(folder):
    def problems(place, **changes):
        records = list(RECORDS)
        records[place] = dataclasses.replace(records[place], **changes)
        write_jsonl(folder / "records.jsonl", records)
        return verify(LAYOUT, folder)

    place = next(n for n, r in enumerate(RECORDS) if 0.178 in r.values("test"))
    found = problems(place, test={"mcr": [0.177, 0.180]})
    assert any("table.csv line" in problem for problem in found)
    # A change that moves no cell still moves the digest that the pages show.
    page, latex, time = problems(0, seeds={"split": 1})
    assert all("digest" in problem for problem in (page, latex, time))
    (problem,) = problems(0, environment={"a": "b"})
    assert "time.md" in problem


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
    other = folder / "query_curves-balanced.png"
    other.write_bytes(b"no image")
    apart, unreadable = verify(LAYOUT, folder)
    assert "differs in 3600 of" in apart
    assert apart.endswith("first in row 0, column 0")
    assert f"{other} is no readable PNG" in unreadable


def test_verify_reports_a_folder_without_records(tmp_path):
    (problem,) = verify(LAYOUT, tmp_path)
    assert problem.endswith("there is no such file")

"""Committed reports are rebuilt, and every difference is named."""

import pytest

from benchmarks.report.page import write_report
from benchmarks.report.verify import verify
from tests.benchmarks.report.page_cases import LAYOUT, RECORDS


@pytest.fixture
def folder(tmp_path):
    write_report(LAYOUT, RECORDS, tmp_path)
    return tmp_path


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
        f"{path} line 2: not a complete record: "
        "Expecting value: line 2 column 1 (char 1)"
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

"""LFW in the layout of its authors: pairs by person and number."""

import pytest
from PIL import Image

from benchmarks.data.listed.lfw import LabeledFaces
from metricopt.errors import DataError

FACES = {"Ann_A": 2, "Bob": 1, "Cid": 2, "Dee": 3}
LINES = ["2\t1", "Ann_A\t1\t2", "Ann_A\t2\tBob\t1", "Cid\t1\t2", "Cid\t1\tDee\t3"]


@pytest.fixture
def layout(tmp_path, monkeypatch):
    monkeypatch.setattr(LabeledFaces, "expected", (3, 7, 1, 3))
    monkeypatch.setattr("benchmarks.data.listed.faces.HELD", 2)
    for person, count in FACES.items():
        folder = tmp_path / "lfw" / "lfw" / person
        folder.mkdir(parents=True)
        for number in range(1, count + 1):
            Image.new("RGB", (8, 8)).save(folder / f"{person}_{number:04d}.jpg")
    (tmp_path / "lfw" / "pairs.txt").write_text("\n".join(LINES))
    return tmp_path


def test_pairs_name_people_with_numbers(layout, monkeypatch):
    monkeypatch.setattr("benchmarks.data.listed.faces.HELD", 1)
    monkeypatch.setattr(LabeledFaces, "expected", (5, 7, 2, 3))
    images = LabeledFaces().load(layout, offline=True)
    assert images.paths[images.train_rows :] == (
        "lfw/Ann_A/Ann_A_0001.jpg",
        "lfw/Ann_A/Ann_A_0002.jpg",
        "lfw/Bob/Bob_0001.jpg",
    )
    assert images.pairs.tolist() == [[5, 6], [6, 7]]
    assert images.read(7).size == (8, 8)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["2 1", *LINES[1:4]], "got '2 1' before 3 lines"),
        (["ten", *LINES[1:]], "got 'ten' before 4 lines"),
        (["2 1", "Ann_A 1", *LINES[2:]], "two people with a number each"),
        (["2 1", "Ann_A 1 7", *LINES[2:]], "got none of 'Ann_A_0007'"),
    ],
)
def test_malformed_lists_are_refused(layout, lines, message):
    (layout / "lfw" / "pairs.txt").write_text("\n".join(lines))
    with pytest.raises(DataError, match=message):
        LabeledFaces().load(layout, offline=True)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"lfw needs pairs.txt and the folder lfw"):
        LabeledFaces().load(tmp_path)

"""CMRC 2018: the real files, and what is refused of others."""

import json
import lzma

import pytest

from benchmarks.data.reading.cmrc import CMRCDev
from benchmarks.data.reading.contract import read_questions
from benchmarks.data.registry import all_names, find_any
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError


def squad(*questions, context="甲的颜色是红色。"):
    qas = [
        {"id": f"Q{at}", "question": asked, "answers": [{"text": t} for t in texts]}
        for at, (asked, *texts) in enumerate(questions)
    ]
    return {"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}


GOOD = squad(("甲的颜色?", "红色", "红", "红色", "绿"))


def content(data):
    return json.dumps(data, ensure_ascii=False).encode()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(CMRCDev, "expected", (1, 1))
    monkeypatch.setattr(CMRCDev, "digest", "")
    return CMRCDev()


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_read(small, tmp_path, packed):
    folder = tmp_path / "cmrc2018"
    folder.mkdir()
    for name in ("dev.json", "trial.json"):
        data = content(GOOD)
        if packed:
            (folder / f"{name}.xz").write_bytes(lzma.compress(data))
        else:
            (folder / name).write_bytes(data)
    found = small.load(tmp_path, offline=True)
    (first,), (second,) = found.parts["train"], found.parts["test"]
    # Once each, and the answer that is not in the paragraph is a reference, too.
    assert first.answers == ("红色", "红", "绿")
    assert (first.paragraph, second.paragraph) == (0, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (squad(("?", "蓝")), "1 questions of which no answer is in the paragraph .Q0."),
        (squad(("", "红")), "1 empty questions"),
        (squad(("?", " ")), "1 questions without an answer"),
        (squad(("?", "红"), context=" "), "1 questions on an empty paragraph"),
        (squad(("?\ufffd", "红")), "1 questions with broken characters"),
        (squad(), "must hold a question, got none"),
        ({"version": 1}, "not in the layout of SQuAD: KeyError 'data'"),
        ({"data": [{"paragraphs": [{"context": 3, "qas": [4]}]}]}, "layout of SQuAD"),
    ],
)
def test_wrong_questions_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        read_questions(content(data), "dev.json")


def test_other_encodings_are_refused():
    mixed = content(GOOD).replace("红".encode(), "红".encode("gb18030"), 1)
    with pytest.raises(DataError, match=r"dev\.json must be text in UTF-8, got"):
        read_questions(mixed, "dev.json")
    with pytest.raises(DataError, match="layout of SQuAD"):
        read_questions(b"[1, 2", "dev.json")
    assert read_questions(b"\xef\xbb\xbf" + content(GOOD), "dev.json")


def test_missing_and_damaged_files_are_refused(small, tmp_path):
    with pytest.raises(DataError, match=r"needs dev\.json and trial\.json"):
        small.load(tmp_path, offline=True)
    folder = tmp_path / "cmrc2018"
    folder.mkdir()
    for name in ("dev.json.xz", "trial.json.xz"):
        (folder / name).write_bytes(b"no xz")
    with pytest.raises(DataError, match="cannot be unpacked"):
        small.load(tmp_path, offline=True)


@pytest.mark.parametrize("name", ["cmrc2018-dev", "made-questions"])
def test_the_questions_are_those_expected(name):
    source = find_any(name)
    assert name in all_names()
    if source.status()[0].state == "missing":
        pytest.skip(f"no copy of {name} at hand")
    found = source.load(data_root(), offline=True)
    counts = tuple(len(found.parts[part]) for part in ("train", "test"))
    assert counts == source.expected
    numbers = [{one.paragraph for one in own} for own in found.parts.values()]
    assert not numbers[0] & numbers[1]

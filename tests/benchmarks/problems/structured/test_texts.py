"""Questions as a reader sees them: windows, numbers, matches and places of answers."""

import pytest
import torch

from benchmarks.data.reading.contract import Question
from benchmarks.problems.structured.texts import UNKNOWN, Texts, Vocabulary
from metricopt.errors import DataError
from metricopt.structured.spans import text, unpacked

CONTEXT = "甲是山。乙的颜色是红色。丙是河。"


def question(asked="乙的颜色是什么", answers=("红色",), context=CONTEXT):
    return Question("q", 0, context, asked, answers)


def texts(*questions, length=40, size=50, **more):
    return Texts(questions, Vocabulary.of(questions, size), length, **more)


def test_the_answer_is_where_it_stands():
    found = texts(question(answers=("没有", "红色", "红")))
    spans = unpacked(found.targets, 40)
    first, last = int(spans.first), int(spans.last)
    assert text(spans.characters[0, first : last + 1]) == "红色"
    assert [text(part) for part in spans.references[0]] == ["没有", "红色", "红"]
    assert text(spans.characters[0]) == CONTEXT and found.found == 1


def test_inputs_are_numbers_segments_and_matches():
    found = texts(question())
    ids, segments, matches = found.batch(slice(1))[0]
    assert segments.tolist() == [1] * 8 + [2] * 16 + [0] * 16
    assert ids[7] == UNKNOWN and (ids[24:] == 0).all() and (ids[:7] > UNKNOWN).all()
    # 乙的颜色是 is in the question: runs of three.
    assert matches[8:24].tolist() == [0, 1, 0, 0, 3, 3, 3, 3, 3, 0, 1, 0, 0, 1, 0, 0]


def test_the_window_is_chosen_by_the_question_alone():
    far = "无关" * 60 + CONTEXT + "无关" * 60
    found = texts(question(context=far), question(answers=("关",), context=far))
    for row in range(2):
        window = text(unpacked(found.targets, 40).characters[row])
        assert len(window) == 32 and "乙的颜色是红色" in window


def test_questions_without_an_answer_in_sight_train_nothing():
    far = CONTEXT + "无关" * 60 + "庚"
    lost = question(answers=("庚",), context=far)
    kept = texts(lost, question())
    assert len(kept) == 2 and kept.found == 0.5
    assert unpacked(kept.targets, 40).first[0] == 8
    assert len(texts(lost, question(), learnable=True)) == 1
    with pytest.raises(DataError, match="no question has an answer in the window"):
        texts(lost, learnable=True)


def test_characters_outside_the_vocabulary_have_one_number():
    known = Vocabulary.of([question()], 5)
    assert len(known.numbers) == 3 and known.encoded("猫") == [UNKNOWN]
    # The most frequent come first; of equals the first in order of code points.
    assert known.numbers["是"] == 2
    same = Vocabulary.of([question(), question(asked="猫")], 50)
    # A paragraph of two questions counts once.
    assert set(same.numbers) == set(CONTEXT + "什么猫")


def test_some_of_them_are_the_same():
    found = texts(question(), question("甲是什么", ("山",)))
    index = torch.tensor([1])
    assert torch.equal(found.batch(index), found.batch(slice(1, 2)))
    generator = torch.Generator()
    assert torch.equal(found.augmented(index, generator), found.batch(index))
    assert len(found.first(1)) == 1 and len(found.to(torch.device("cpu"))) == 2

"""Made-up questions about made-up things, for the smoke tier; no file is needed."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import DrawnSource
from benchmarks.data.reading.contract import (
    READING,
    TEST,
    TRAIN,
    Question,
    ReadingSource,
    read_questions,
)

PARAGRAPHS = {TRAIN: 48, TEST: 16}
THINGS = "山河湖海城桥塔船车马"
KINDS = {"颜色": "红黄蓝白黑", "大小": "长短高低宽", "年代": "元明清唐宋"}


@READING.register("made-questions")
class MadeQuestions(DrawnSource, ReadingSource):
    """192 questions on 64 paragraphs: 144 to train on, 48 of the test."""

    name = "made-questions"
    folder = "made-questions"
    expected = (3 * PARAGRAPHS[TRAIN], 3 * PARAGRAPHS[TEST])
    note = "made up by a program"

    def _reader(self, folder: Path) -> Reader:
        return _Made()

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Question, ...]]:
        parts: dict[str, tuple[Question, ...]] = {}
        first = 0
        for part, count in PARAGRAPHS.items():
            name = f"{part}.json"
            parts[part] = tuple(read_questions(reader.read(name), name, first))
            first += count
        return parts


class _Made(Reader):
    """Makes up a part of the data set, in the layout of SQuAD."""

    @property
    def sizes(self) -> Mapping[str, int]:
        return {f"{part}.json": 0 for part in PARAGRAPHS}

    def read(self, path: str) -> bytes:
        chance = random.Random(path)
        part = path.removesuffix(".json")
        paragraphs = [_paragraph(chance, at) for at in range(PARAGRAPHS[part])]
        data = [{"paragraphs": [paragraph]} for paragraph in paragraphs]
        return json.dumps({"data": data}, ensure_ascii=False).encode()


def _paragraph(chance: random.Random, number: int) -> dict[str, object]:
    """Return a paragraph of three sentences, with a question about each."""
    things = chance.sample(THINGS, 3)
    kinds = [chance.choice(sorted(KINDS)) for _ in things]
    values = [chance.choice(KINDS[kind]) + chance.choice("的色代") for kind in kinds]
    facts = list(zip(things, kinds, values, strict=True))
    context = "。".join(f"{thing}的{kind}是{value}" for thing, kind, value in facts)
    questions = [
        {
            "id": f"{number}-{at}",
            "question": f"{thing}的{kind}是什么?",
            "answers": [{"text": value, "answer_start": context.find(value)}],
        }
        for at, (thing, kind, value) in enumerate(facts)
    ]
    return {"context": f"{context}。", "qas": questions}

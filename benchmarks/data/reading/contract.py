"""The contract of a data set of reading comprehension, in the layout of SQuAD."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.read_source import DividedSource
from metricopt.errors import DataError
from metricopt.registry import Registry

TRAIN, TEST = "train", "test"
REFERENCES = 3
"""Most answers of a question that are kept."""


@dataclass(frozen=True)
class Question:
    """A question about a paragraph.

    Attributes:
        name: as in the file.
        paragraph: number of the paragraph; questions of one stay together.
        context: text of the paragraph.
        text: the question.
        answers: one to three answers, of which one at least is in the context.
    """

    name: str
    paragraph: int
    context: str
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Questions:
    """All questions of a data set.

    Attributes:
        label: name of the data set.
        digest: sha256 of all texts.
        parts: the questions of `train` and `test`.
    """

    label: str
    digest: str
    parts: Mapping[str, tuple[Question, ...]]


class ReadingSource(DividedSource):
    """A data set of reading comprehension."""

    counts = "({:,}, {:,}) questions to train and test"

    def _read(self, reader: Reader) -> Questions:
        parts = self._parts(reader)
        every = [question for own in parts.values() for question in own]
        content = json.dumps([vars(one) for one in every], ensure_ascii=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        self._check((len(parts[TRAIN]), len(parts[TEST])), digest)
        return Questions(self.name, digest, parts)

    @abstractmethod
    def _parts(self, reader: Reader) -> Mapping[str, tuple[Question, ...]]:
        """Return the questions of every part.

        Raises:
            DataError: if files are missing or malformed.
        """


READING: Registry[type[ReadingSource]] = Registry(
    "data set of reading", "benchmarks.data.reading"
)
"""All data sets of reading comprehension by name."""


def read_questions(
    content: bytes, where: str, first: int = 0, left_out: Sequence[str] = ()
) -> list[Question]:
    """Return the questions of a file in the layout of SQuAD, version 1.

    Args:
        content: the file, JSON in UTF-8.
        where: what messages call it.
        first: number of the first paragraph.
        left_out: names of questions that are left out.

    Raises:
        DataError: if it is not that, a text is empty, or no answer of a question is in
            its paragraph.
    """
    try:
        data = json.loads(content.decode("utf-8-sig"))["data"]
        found = [one for one in _listed(data, first) if one.name not in left_out]
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} must be text in UTF-8, got the byte {content[error.start]:#04x} "
            f"at {error.start}"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{where} is not in the layout of SQuAD: {type(error).__name__} {error}"
        ) from error
    check_questions(where, found)
    return found


def check_questions(where: str, questions: Sequence[Question]) -> None:
    """Check that texts are there, and answers in their paragraphs.

    Raises:
        DataError: if a paragraph, a question or all its answers are empty, or no answer
            is in the paragraph; the message counts and names them.
    """
    if not questions:
        raise DataError(f"{where} must hold a question, got none")
    for what, wrong in (
        ("questions on an empty paragraph", lambda q: not q.context.strip()),
        ("empty questions", lambda q: not q.text.strip()),
        ("questions without an answer", lambda q: not q.answers),
        ("questions with broken characters", lambda q: "\ufffd" in q.context + q.text),
        (
            "questions of which no answer is in the paragraph",
            lambda q: not any(answer in q.context for answer in q.answers),
        ),
    ):
        refuse(where, what, [q.name for q in questions if wrong(q)])


def _listed(data: Any, first: int) -> list[Question]:
    found = []
    paragraphs = [part for article in data for part in article["paragraphs"]]
    for number, paragraph in enumerate(paragraphs, start=first):
        context = paragraph["context"]
        for one in paragraph["qas"]:
            texts = [answer["text"].strip() for answer in one["answers"]]
            answers = tuple(dict.fromkeys(text for text in texts if text))
            found.append(
                Question(
                    str(one["id"]),
                    number,
                    context,
                    one["question"].strip(),
                    answers[:REFERENCES],
                )
            )
    return found

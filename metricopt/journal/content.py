"""What a journal file holds: a heading with the run, then a line for every query.

Every line begins with a checksum of itself and all lines before it, so a line that was
changed, lost or moved is found out. Only the last line can be torn by a crash.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

from metricopt.errors import DataError

FORMAT = "metricopt-checkpoint-1"
CHECKSUM = 32
"""Hexadecimal digits of a checksum."""


@dataclass(frozen=True)
class Answer:
    """What the metric said to one question.

    Attributes:
        question: digest of the outputs and targets it was asked about.
        value: in native units; None if it failed.
        failure: the message of its error when it failed.
        kind: the name of the class of that error.
    """

    question: str
    value: float | None = None
    failure: str | None = None
    kind: str | None = None

    @classmethod
    def of(cls, held: dict[str, Any]) -> Self:
        """Return the answer that a line holds.

        Raises:
            TypeError, ValueError: if it holds anything else.
        """
        answer = cls(**held)
        number = type(answer.value) in (int, float) and answer.failure is None
        failed = answer.value is None and isinstance(answer.failure, str)
        if number or failed:
            return answer
        raise ValueError("neither a value nor a failure")


@dataclass(frozen=True)
class Content:
    """The complete lines of a journal file.

    Attributes:
        facts: what decides the run, by name.
        answers: in the order of the questions.
        ends: places in the file after the heading and after each answer.
        checksums: checksums of the heading and of each answer.
    """

    facts: dict[str, str]
    answers: tuple[Answer, ...]
    ends: tuple[int, ...]
    checksums: tuple[str, ...]


def heading(facts: dict[str, str]) -> tuple[bytes, str]:
    """Return the first line of a journal, and its checksum."""
    return _line(facts, FORMAT)


def line(answer: Answer, before: str) -> tuple[bytes, str]:
    """Return the line of an answer, and its checksum, after that of the line before."""
    held = {name: part for name, part in vars(answer).items() if part is not None}
    return _line(held, before)


def read(raw: bytes, name: str) -> Content | None:
    """Return the complete lines of a journal; None if not even the heading is complete.

    Raises:
        DataError: if the file is no journal, or a complete line is damaged; the message
            names it, the line, and what to do.
    """
    complete, newline, rest = raw.rpartition(b"\n")
    own = FORMAT.encode()
    if not newline and (rest.startswith(own) or own.startswith(rest)):
        return None
    if not raw.startswith(own + b" "):
        raise DataError(
            f"{name} is no checkpoint of finetune: give the name of a new file"
        )
    held, ends, checksums, end = [], [], [FORMAT], 0
    for number, text in enumerate(complete.split(b"\n"), start=1):
        body = text[len(own) + 1 :] if number == 1 else text
        try:
            held.append(_held(body, checksums[-1], is_answer=number > 1))
        except (TypeError, ValueError, RecursionError):
            raise DataError(
                f"line {number} of the checkpoint {name} is damaged: put a copy of the "
                "file in its place, or delete it to begin anew with all queries"
            ) from None
        end += len(text) + 1
        ends.append(end)
        checksums.append(body[:CHECKSUM].decode())
    return Content(held[0], tuple(held[1:]), tuple(ends), tuple(checksums[1:]))


def _line(held: dict[str, Any], before: str) -> tuple[bytes, str]:
    text = json.dumps(held)
    checksum = _checksum(text, before)
    start = f"{FORMAT} " if before == FORMAT else ""
    return f"{start}{checksum} {text}\n".encode(), checksum


def _held(body: bytes, before: str, *, is_answer: bool) -> Any:
    checksum, _, text = body.decode().partition(" ")
    if checksum != _checksum(text, before):
        raise ValueError("another checksum")
    held = json.loads(text)
    if not isinstance(held, dict):
        raise TypeError("no object")
    return Answer.of(held) if is_answer else held


def _checksum(text: str, before: str) -> str:
    return hashlib.sha256(f"{before} {text}".encode()).hexdigest()[:CHECKSUM]

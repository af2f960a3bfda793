"""An append-only file of the metric's answers; a run that is repeated reads them.

It holds a heading with the run, then a line for every query. Every line begins with a
checksum of itself and all lines before it, so a line that was changed, lost or moved is
found out. Only the last line can be torn by a crash.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from filelock import lock_descriptor

from metricopt.errors import (
    ConfigError,
    DataError,
    MetricError,
    MetricOptError,
    RangeError,
    ShapeError,
)
from metricopt.files import user_path
from metricopt.journal.run_facts import FREE, digest
from metricopt.metrics.base import Metric, WrappedMetric
from metricopt.metrics.constrained import metrics_of, over_each

FORMAT = "metricopt-checkpoint-1"
CHECKSUM = 32
"""Hexadecimal digits of a checksum."""
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
# A pipe must not be waited for, which Windows cannot have; ends of lines, which only
# Windows would change, are part of what is checked.
FLAGS |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Answer:
    """What the metric said to one question.

    Attributes:
        question: digest of the outputs and targets it was asked about.
        value: in native units; None if it failed.
        failure: the message of its error when it failed.
        kind: the name of the class of that error.
        ended_early: True if the clock or a callback had ended something before.
    """

    question: str
    value: float | None = None
    failure: str | None = None
    kind: str | None = None
    ended_early: bool | None = None

    @classmethod
    def of(cls, held: dict[str, Any]) -> Self:
        """Return the answer that a line holds.

        Raises:
            TypeError, ValueError: if it holds anything else.
        """
        answer = cls(**held)
        number = type(answer.value) in (int, float) and answer.failure is None
        failed = answer.value is None and isinstance(answer.failure, str)
        if (number or failed) and answer.ended_early in (None, True):
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


NAMED = DataError, ShapeError, ConfigError, RangeError
KINDS = {kind.__name__: kind for kind in NAMED}
"""Errors of a metric by name; any other counts as a MetricError."""
SHOWN = 3
"""Differences between two runs that a message names."""


class Journal:
    """The file of one run, open and locked while it is a context.

    A run is deterministic. So it is not its state that is kept, but what the metric
    said: the same call asks the same questions again, and gets those answers that are
    in the file without evaluating the metric. Every answer is on disk before the run
    goes on. Nothing is written before the first answer. A run whose metric has another
    range may ask in another order, and so may one where the clock or a callback ended
    a search, now or before: each gets the answers to the questions that it asks.

    Attributes:
        replayed: questions that were answered from the file.

    Raises:
        ConfigError: if the file cannot be opened, locked, read or written, or is that
            of another run by its facts.
        DataError: if it is no journal, or a line is damaged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        facts: dict[str, str],
        ended_early: Callable[[], bool] = bool,
    ) -> None:
        self.path, self._ended_early = user_path(path), ended_early
        self.replayed = 0
        self._facts = facts
        self._answers: tuple[Answer, ...] = ()
        self._any_order: list[Answer] | None = None
        self._pending, self._checksum = heading(facts)  # written with the first answer
        self._end = 0
        self._file = self._opened()
        try:
            self._lock()
            self._load()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self._file)  # which unlocks it

    def answer(self, question: str, ask: Callable[[], float]) -> float:
        """Return the recorded answer to a question, or else ask and record it.

        Raises:
            ConfigError: if another question is recorded here, or the answer cannot be
                written.
            MetricOptError: if the metric fails, or failed when it was recorded.
        """
        recorded = self._recorded(question)
        if recorded is not None:
            self.replayed += 1
            if recorded.value is None:
                raise KINDS.get(str(recorded.kind), MetricError)(recorded.failure)
            return float(recorded.value)
        try:
            value = ask()
        except MetricOptError as error:
            # A run may survive it, as where a metric is undefined at perfect outputs.
            kind = type(error).__name__
            self._append(Answer(question, failure=str(error), kind=kind))
            raise
        self._append(Answer(question, value))
        return value

    def _recorded(self, question: str) -> Answer | None:
        """Return the answer to a question that is in the file; None if it is new."""
        if self._any_order is not None:
            asked = (a for a in self._any_order if a.question == question)
            found = next(asked, None)
            if found is not None:
                self._any_order.remove(found)
            return found
        if self.replayed == len(self._answers):
            return None
        recorded = self._answers[self.replayed]
        if recorded.question == question:
            return recorded
        if self._ended_early():
            self._any_order = list(self._answers[self.replayed :])
            return self._recorded(question)
        raise ConfigError(
            f"question {self.replayed + 1} of this call asks about other outputs than "
            f"the one recorded in the checkpoint {self.path}, so the call does not "
            "repeat itself: seed what the loss, the model and the data draw at random, "
            "or give another file to begin anew"
        )

    def _append(self, answer: Answer) -> None:
        noted = replace(answer, ended_early=self._ended_early() or None)
        content, checksum = line(noted, self._checksum)
        try:
            os.ftruncate(self._file, self._end)  # what a crash left of a line
            _write(self._file, self._pending + content)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            said = answer.failure if answer.value is None else answer.value
            raise ConfigError(
                f"the answer {said} of the metric could not be written to the "
                f"checkpoint {self.path}: {error.strerror}; mend this and call again, "
                "the answers before it are in the file"
            ) from error
        self._end += len(self._pending) + len(content)
        self._pending, self._checksum = b"", checksum

    def _opened(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, FLAGS, 0o666)
        except (OSError, ValueError) as error:  # ValueError: a null byte in the name
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"the checkpoint {self.path} cannot be opened for writing: {reason}; "
                "give the name of a file that can"
            ) from error
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise ConfigError(f"the checkpoint {self.path} must be a regular file")

    def _lock(self) -> None:
        try:
            locked = lock_descriptor(self._file, blocking=False)
        except OSError as error:
            raise ConfigError(
                f"the checkpoint {self.path} cannot be locked: {error.strerror}; give "
                "a file on another file system"
            ) from error
        if not locked:
            raise ConfigError(
                f"the checkpoint {self.path} is in use by another call of finetune: "
                "wait for its end, or give another file"
            )

    def _load(self) -> None:
        """Read the answers; the file stays as it is until the next one."""
        try:
            with open(self._file, "rb", closefd=False) as file:
                raw = file.read(len(FORMAT))
                if raw == FORMAT.encode():  # else it may be any large file
                    raw += file.read()
        except OSError as error:
            raise ConfigError(
                f"the checkpoint {self.path} cannot be read: {error.strerror}"
            ) from error
        content = read(raw, str(self.path))
        if content is not None:
            self._continue(content)

    def _continue(self, content: Content) -> None:
        answers = content.answers
        while answers and answers[-1].value is None:
            answers = answers[:-1]  # the run ended with these: they are asked again
        if not answers:
            return
        self._check_run(content)
        self._answers, self._pending = answers, b""
        ended = any(answer.ended_early for answer in answers)
        if ended or any(content.facts.get(n) != self._facts.get(n) for n in FREE):
            self._any_order = list(answers)
        self._checksum = content.checksums[len(answers)]
        self._end = content.ends[len(answers)]

    def _check_run(self, content: Content) -> None:
        before, now = content.facts, self._facts
        differences = [
            f"its {name} was {before.get(name)}, this call has {now.get(name)}"
            for name in sorted(before.keys() | now.keys())
            if name not in FREE and before.get(name) != now.get(name)
        ]
        if differences:
            raise ConfigError(
                f"the checkpoint {self.path} is that of another run: "
                f"{'; '.join(differences[:SHOWN])}; make the same call again, or give "
                "another file to begin anew"
            )


def _write(file: int, content: bytes) -> None:
    """Write at the end of a file, and wait until it is on disk."""
    while content:
        content = content[os.write(file, content) :]
    os.fsync(file)


class JournalledMetric(WrappedMetric):
    """Asks a metric row by row, and only what the journal does not answer.

    Args:
        metric: what is asked.
        journal: where answers are.
        label: tells its questions from those of other metrics; "" for one alone.
    """

    def __init__(self, metric: Metric, journal: Journal, label: str = "") -> None:
        super().__init__(metric)
        self._journal, self._label = journal, label

    def _value(self, outputs: Any, targets: Any) -> float:
        labelled = (self._label,) if self._label else ()
        question = digest((*labelled, outputs, targets))
        return self._journal.answer(
            question, lambda: self.metric.value(outputs, targets)
        )


def journalled(metric: Metric, journal: Journal) -> Metric:
    """Return a metric that asks only what the journal does not answer.

    Of one with bounds, each part asks for itself.
    """
    if len(metrics_of(metric)) == 1:
        return JournalledMetric(metric, journal)
    return over_each(metric, lambda part: JournalledMetric(part, journal, part.name))

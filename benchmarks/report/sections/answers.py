"""The section of answers a reader can look at: spans in their text, translations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.runs.record import RunRecord

ANSWERS = "## Answers"
SHARED = "Rows that answer alike share a line."


@dataclass(frozen=True)
class _Form:
    """What a kind of answer looks like.

    Attributes:
        note: name of the note that records have.
        legend: what a reader is told.
        heads: headings of what was asked, and of the reference.
        asked: both of them, of an entry of the note.
        answered: what was answered.
    """

    note: str
    legend: str
    heads: tuple[str, str]
    asked: Callable[[Mapping[str, Any]], tuple[str, str]]
    answered: Callable[[Mapping[str, Any]], str]


def _marked(one: Mapping[str, Any]) -> str:
    """Return an answer in brackets, in the text around it."""
    before, answer, after = (_plain(one[n]) for n in ("before", "answer", "after"))
    return f"{before}【{answer}】{after}"


FORMS = (
    _Form(
        "questions",
        "Questions of the test, drawn by a fixed seed, and what the networks of the "
        "first replicate answer: the span in brackets, in the text around it.",
        ("question", "references"),
        lambda one: (one["question"], " / ".join(one["references"])),
        _marked,
    ),
    _Form(
        "translations",
        "Sentences of the test, drawn by a fixed seed, and what the networks of the "
        "first replicate make of them.",
        ("source", "reference"),
        lambda one: (one["source"], one["reference"]),
        lambda one: _plain(one["answer"]),
    ),
)
"""The kinds of answers."""


def answers(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section with a line for every question, or sentence, and answer.

    Reads the notes `questions` and `translations`; see
    `benchmarks.problems.structured`. Empty if no record has one. In a table with
    several columns, each has a part of its own.
    """
    lines: list[str] = []
    for form in FORMS:
        noted = [record for record in records if record.notes.get(form.note)]
        columns = list(dict.fromkeys(record.spec.column for record in noted))
        for column in columns:
            heading = ANSWERS if len(columns) == 1 else f"{ANSWERS}: {column}"
            own = [record for record in noted if record.spec.column == column]
            lines += _section(form, heading, layout, own)
    return lines


def _section(
    form: _Form, heading: str, layout: TableLayout, records: Sequence[RunRecord]
) -> list[str]:
    found = {record.spec.row: record.notes[form.note] for record in records}
    rows = [row for row in layout.rows if row.name in found]
    lines = []
    for place in range(len(found[rows[0].name]) if rows else 0):
        said: dict[str, list[str]] = {}
        for row in rows:
            answer = form.answered(found[row.name][place])
            said.setdefault(answer, []).append(row.label)
        first = [*form.asked(found[rows[0].name][place])]
        for answer, labels in said.items():
            lines.append([*map(_plain, first), ", ".join(labels), answer])
            first = ["", ""]
    names = (*form.heads, "method", "answer")
    return section(heading, f"{form.legend} {SHARED}", lines, names)


def _plain(text: str) -> str:
    """Return a text in one line without what divides the cells of a table."""
    return " ".join(text.replace("|", "/").split())

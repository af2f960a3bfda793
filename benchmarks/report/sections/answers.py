"""The section of answers that a reader can look at: spans, marked in their text."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.runs.record import RunRecord

ANSWERS = "## Answers"
LEGEND = (
    "Questions of the test, drawn by a fixed seed, and what the networks of the first "
    "replicate answer: the span in brackets, in the text around it. Rows that answer "
    "alike share a line."
)
NAMES = ("question", "references", "method", "answer")


def answers(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section with a line for every question and answer.

    Reads the note `questions`; see `benchmarks.problems.structured.spans`. Empty if no
    record has it.
    """
    found = {
        record.spec.row: record.notes["questions"]
        for record in records
        if record.notes.get("questions")
    }
    rows = [row for row in layout.rows if row.name in found]
    lines = []
    for place in range(len(found[rows[0].name]) if rows else 0):
        said: dict[str, list[str]] = {}
        for row in rows:
            one = found[row.name][place]
            said.setdefault(_marked(one), []).append(row.label)
        asked = found[rows[0].name][place]
        first = [asked["question"], " / ".join(asked["references"])]
        for marked, labels in said.items():
            lines.append([*map(_plain, first), ", ".join(labels), marked])
            first = ["", ""]
    return section(ANSWERS, LEGEND, lines, NAMES)


def _marked(one: Mapping[str, Any]) -> str:
    """Return an answer in brackets, in the text around it."""
    before, answer, after = (_plain(one[n]) for n in ("before", "answer", "after"))
    return f"{before}【{answer}】{after}"


def _plain(text: str) -> str:
    """Return a text in one line without what divides the cells of a table."""
    return " ".join(text.replace("|", "/").split())

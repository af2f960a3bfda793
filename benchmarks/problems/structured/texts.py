"""Questions with their paragraphs, as a reader is trained on and judged by them."""

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.training.batches import WHOLE
from benchmarks.data.reading.contract import Question
from benchmarks.networks.reading.contract import PARAGRAPH, QUESTION
from metricopt.errors import DataError
from metricopt.structured.spans import pack_spans

NOTHING, UNKNOWN, KNOWN = 0, 1, 2
"""Numbers of no character, of one outside of the vocabulary, and of the first known."""
ASKED = 48
"""Most characters of a question; its end counts most."""
RUN = 3
"""Characters in a row that are looked for in the question."""


@dataclass(frozen=True)
class Vocabulary:
    """Characters by number, and what stands around question and paragraph.

    Args:
        numbers: number of every known character; 0 is no character.
        unknown: number of any other.
        before: numbers before the question.
        between: numbers between question and paragraph.
        after: numbers after the paragraph.
    """

    numbers: dict[str, int]
    unknown: int = UNKNOWN
    before: tuple[int, ...] = ()
    between: tuple[int, ...] = (UNKNOWN,)
    after: tuple[int, ...] = ()

    @classmethod
    def of(cls, questions: Sequence[Question], size: int) -> "Vocabulary":
        """Return the most frequent characters of paragraphs and questions.

        Args:
            questions: whose texts are counted, every paragraph once.
            size: numbers there are, `NOTHING` and `UNKNOWN` among them.
        """
        paragraphs = {one.paragraph: one.context for one in questions}
        counts: Counter[str] = Counter()
        for text in (*paragraphs.values(), *(one.text for one in questions)):
            counts.update(text)
        ranked = sorted(counts, key=lambda each: (-counts[each], each))
        kept = ranked[: size - KNOWN]
        return cls({each: number for number, each in enumerate(kept, start=KNOWN)})

    def encoded(self, text: str) -> list[int]:
        """Return the number of every character, `unknown` for one that is not known."""
        return [self.numbers.get(each, self.unknown) for each in text]


class Texts:
    """Questions with a window of their paragraphs; all in memory.

    They are examples in the sense of `metricopt.tasks.examples.Examples`. The window is
    the part of the paragraph that has most of the question's pairs of characters; it
    knows nothing of the answer. Targets are spans that `metricopt.structured.spans`
    packs: the first answer in the window, or the window's first character where there
    is none.

    Args:
        questions: the questions.
        vocabulary: numbers of characters.
        length: places L of the input.
        learnable: whether questions without an answer in their window are left out.

    Attributes:
        targets: packed spans.
        questions: those that are kept.

    Raises:
        DataError: if no question is left.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        vocabulary: Vocabulary,
        length: int,
        *,
        learnable: bool = False,
    ) -> None:
        made = [_Windowed.of(question, vocabulary, length) for question in questions]
        pairs = [
            (question, one)
            for question, one in zip(questions, made, strict=True)
            if one.gold is not None or not learnable
        ]
        if not pairs:
            raise DataError("no question has an answer in the window of its paragraph")
        self.questions = [question for question, _ in pairs]
        windows = [one for _, one in pairs]
        self._inputs = torch.stack([one.inputs(vocabulary, length) for one in windows])
        self.targets = pack_spans(
            [one.gold or (one.start, one.start) for one in windows],
            torch.stack([one.characters(length) for one in windows]),
            [question.answers for question in self.questions],
        )
        self.found = sum(one.gold is not None for one in windows) / len(windows)

    def __len__(self) -> int:
        return len(self._inputs)

    def to(self, device: torch.device) -> "Texts":
        """Return the same questions on a device."""
        moved = copy.copy(self)
        moved._inputs, moved.targets = self._inputs.to(device), self.targets.to(device)
        return moved

    def first(self, count: int | None) -> "Texts":
        """Return the first questions; all of them for None."""
        kept = copy.copy(self)
        kept._inputs, kept.targets = self._inputs[:count], self.targets[:count]
        kept.questions = self.questions[:count]
        return kept

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return inputs, int64, shape [n, 3, L]."""
        if isinstance(index, Tensor):
            index = index.to(self._inputs.device)
        return self._inputs[index]

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return inputs as they are: texts are not changed at random."""
        return self.batch(index[share])


@dataclass(frozen=True)
class _Windowed:
    """A question and a window of its paragraph.

    Attributes:
        asked: the question, cut.
        window: part of the paragraph.
        start: place of the first character of the window.
        gold: first and last place of an answer in the input; None if it has none.
    """

    asked: str
    window: str
    start: int
    gold: tuple[int, int] | None

    @classmethod
    def of(cls, question: Question, known: Vocabulary, length: int) -> "_Windowed":
        asked = question.text[-min(ASKED, length // 2 - 1) :]
        start = len(known.before) + len(asked) + len(known.between)
        room = length - start - len(known.after)
        window = _window(question.context, asked, room)
        places = [window.find(answer) for answer in question.answers]
        at = next((n for n, place in enumerate(places) if place >= 0), None)
        gold = None
        if at is not None:
            first = start + places[at]
            gold = first, first + len(question.answers[at]) - 1
        return cls(asked, window, start, gold)

    def inputs(self, known: Vocabulary, length: int) -> Tensor:
        """Return numbers, segments and matches, int64, shape [3, L]."""
        found = torch.zeros(3, length, dtype=torch.int64)
        ids = [*known.before, *known.encoded(self.asked), *known.between]
        ids += [*known.encoded(self.window), *known.after]
        end, read = len(ids), self.start + len(self.window)
        found[0, :end] = torch.tensor(ids)
        found[1, : self.start], found[1, self.start : end] = QUESTION, PARAGRAPH
        found[2, self.start : read] = torch.tensor(_matches(self.window, self.asked))
        return found

    def characters(self, length: int) -> Tensor:
        """Return the code points of the window, 0 elsewhere, int64, shape [L]."""
        found = torch.zeros(length, dtype=torch.int64)
        codes = torch.tensor([ord(each) for each in self.window])
        found[self.start : self.start + len(codes)] = codes
        return found


def _window(context: str, asked: str, room: int) -> str:
    """Return the part of a paragraph with most pairs of characters of the question."""
    if len(context) <= room:
        return context
    pairs = {asked[at : at + 2] for at in range(len(asked) - 1)}
    has = [context[at : at + 2] in pairs for at in range(len(context))]
    sums = [0]
    for each in has:
        sums.append(sums[-1] + each)
    scores = [sums[at + room] - sums[at] for at in range(len(context) - room + 1)]
    best = max(scores)
    # The middle one of the best, so that what is asked for has room on both sides.
    places = [at for at, score in enumerate(scores) if score == best]
    start = places[len(places) // 2]
    return context[start : start + room]


def _matches(window: str, asked: str) -> list[int]:
    """Return for every character the longest run through it that the question has."""
    found = [0] * len(window)
    for run in range(1, RUN + 1):
        known = {asked[at : at + run] for at in range(len(asked) - run + 1)}
        for at in range(len(window) - run + 1):
            if window[at : at + run] in known:
                for place in range(at, at + run):
                    found[place] = max(found[place], run)
    return found

"""Metrics of answers that are spans of a text: F1, ROUGE-L and BLEU-4 of characters.

Characters count where words would in English. Each metric compares the best span with
all references of its question.
"""

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import DataError, described
from metricopt.metrics.base import METRICS, Metric, check_outputs
from metricopt.reading.outputs import Targets
from metricopt.structured.spans import are_spans, best_spans, text, unpacked

ORDERS = 4
"""Longest n-grams of BLEU."""
BETA = 1.2
"""Weight of recall in ROUGE-L, as in the evaluation code of COCO captions."""
CHINESE = re.compile("[\u4e00-\u9fa5]")
PUNCTUATION = frozenset(
    "-:_*^/\\~`+=,。:?!“”;’《》……·、「」()-~『』" + "：？！；（）－～"  # noqa: RUF001
)
"""What the official F1 leaves out."""
Score = tuple[float, ...]
"""Numbers of one answer, whose means or sums make the metric."""


class SpanMetric(Metric):
    """A metric of the best spans of scores [N, 2, L] against packed spans.

    Answers that were compared before are remembered.

    Raises:
        DataError: by `value`, if targets are not packed spans.
        ShapeError: by `value`, if they are of inputs of another length.
        MetricError: by `value`, if a score is NaN.
    """

    higher_is_better = True
    reads = "spans"
    shape = "[N, 2, L]"

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], Score] = {}

    @abstractmethod
    def _score(self, answer: str, references: Sequence[str]) -> Score:
        """Return the numbers of an answer."""

    def _joined(self, scores: Tensor) -> float:
        """Return the metric of the numbers [N, K] of all answers; by default a mean."""
        return float(scores[:, 0].mean())

    def _value(self, outputs: Tensor, targets: Any) -> float:
        if not are_spans(targets):
            raise DataError(
                f"metric {self.name!r} needs answers as `pack_spans` gives them, int64 "
                f"[N, 2 + L + R A], got {described(targets)}"
            )
        check_outputs(self.name, outputs)
        return self._joined(self.each(outputs, targets))

    def each(self, outputs: Tensor, targets: Targets) -> Tensor:
        """Return the numbers of every answer, float64, shape [N, K]."""
        assert isinstance(targets, Tensor)
        places = best_spans(outputs, targets).tolist()
        spans = unpacked(targets.cpu(), outputs.shape[-1])
        found = []
        for row, (first, last) in enumerate(places):
            answer = text(spans.characters[row, first : last + 1])
            own = tuple(filter(None, map(text, spans.references[row])))
            if (answer, own) not in self._known:
                self._known[answer, own] = self._score(answer, own)
            found.append(self._known[answer, own])
        return torch.tensor(found, dtype=torch.float64)


@METRICS.register("span-f1")
class SpanF1(SpanMetric):
    """Mean F1 of the longest common run of characters, the best of all references.

    Punctuation does not count, and a run of Latin letters and digits is one character.

    Source: Cui et al., EMNLP 2019, and cmrc2018_evaluate.py. Differs: Latin text is
        divided at spaces alone.
    """

    name = "span-f1"

    def _score(self, answer: str, references: Sequence[str]) -> Score:
        return (max(_f1(answer, one) for one in references),)


@METRICS.register("rouge-l")
class RougeL(SpanMetric):
    """Mean F of the longest common subsequence of characters.

    Precision and recall are each the best of all references.

    Args:
        beta: weight of recall.

    Source: Lin, 2004; evaluation code of COCO captions, which DuReader and CMRC use.
    """

    name = "rouge-l"

    def __init__(self, beta: float = BETA) -> None:
        super().__init__()
        self.beta = beta

    def _score(self, answer: str, references: Sequence[str]) -> Score:
        own = _characters(answer)
        others = [_characters(one) for one in references]
        common = [_subsequence(own, other) for other in others]
        precision = max(common) / max(len(own), 1)
        recall = max(
            found / max(len(other), 1)
            for found, other in zip(common, others, strict=True)
        )
        if precision == 0 or recall == 0:
            return (0.0,)
        square = self.beta**2
        return ((1 + square) * precision * recall / (recall + square * precision),)


@METRICS.register("bleu-4")
class Bleu4(SpanMetric):
    """BLEU of all answers together, by n-grams of one to four characters.

    0 if there is no common n-gram of some length.

    Source: Papineni et al., ACL 2002; the reference of the nearest length counts.
    """

    name = "bleu-4"

    def _score(self, answer: str, references: Sequence[str]) -> Score:
        own = _characters(answer)
        others = [_characters(one) for one in references]
        nearest = min(map(len, others), key=lambda n: (abs(n - len(own)), n))
        numbers = [float(len(own)), float(nearest)]
        for order in range(1, ORDERS + 1):
            grams = _grams(own, order)
            most: Counter[str] = Counter()
            for other in others:
                most |= _grams(other, order)
            numbers += [float((grams & most).total()), float(grams.total())]
        return tuple(numbers)

    def _joined(self, scores: Tensor) -> float:
        length, nearest, *counts = scores.sum(0).tolist()
        common, every = counts[::2], counts[1::2]
        if not all(common):
            return 0.0
        pairs = zip(common, every, strict=True)
        precision = sum(math.log(part / whole) for part, whole in pairs) / ORDERS
        return math.exp(precision + min(0.0, 1 - nearest / length))


def _f1(answer: str, reference: str) -> float:
    own, other = _segments(answer), _segments(reference)
    run = _run(own, other)
    if run == 0:
        return 0.0
    return 2 * run / (len(own) + len(other))


def _segments(given: str) -> list[str]:
    """Return Chinese characters one by one and runs of others, without punctuation."""
    found: list[str] = []
    run = ""
    for each in given.lower().strip():
        if each in PUNCTUATION:
            continue
        if CHINESE.match(each):
            found += [*run.split(), each]
            run = ""
        else:
            run += each
    return [*found, *run.split()]


def _characters(given: str) -> str:
    return "".join(given.lower().split())


def _grams(given: str, order: int) -> "Counter[str]":
    starts = range(len(given) - order + 1)
    return Counter(given[at : at + order] for at in starts)


def _run(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common run."""
    best, above = 0, [0] * (len(second) + 1)
    for one in first:
        row = [0]
        for at, other in enumerate(second):
            row.append(above[at] + 1 if one == other else 0)
        best, above = max(best, *row), row
    return best


def _subsequence(first: str, second: str) -> int:
    """Return the length of the longest common subsequence."""
    above = [0] * (len(second) + 1)
    for one in first:
        row = [0]
        for at, other in enumerate(second):
            same = above[at] + 1 if one == other else max(above[at + 1], row[at])
            row.append(same)
        above = row
    return above[-1]

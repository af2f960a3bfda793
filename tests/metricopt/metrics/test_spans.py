"""Metrics of spans: hand-worked cases, the official script, and kept libraries."""

import random
import re

import pytest
import torch
from torchmetrics.text import BLEUScore, ROUGEScore

from metricopt.errors import DataError, MetricError, ShapeError
from metricopt.metrics.spans import Bleu4, RougeL, SpanF1
from metricopt.structured.spans import pack_spans

WORDS = "甲乙丙丁戊己"


def scored(text, first, last):
    """Scores [2, L] whose best span is from a place to another."""
    scores = torch.zeros(2, len(text))
    scores[0, first], scores[1, last] = 5.0, 5.0
    return scores


def problem(answers):
    """Scores and packed spans of (text, first, last, references)."""
    length = max(len(text) for text, *_ in answers)
    codes = torch.zeros(len(answers), length, dtype=torch.int64)
    scores = torch.zeros(len(answers), 2, length)
    for row, (text, first, last, _) in enumerate(answers):
        codes[row, : len(text)] = torch.tensor([ord(each) for each in text])
        scores[row, :, : len(text)] = scored(text, first, last)
    gold = [(0, 0)] * len(answers)
    return scores, pack_spans(gold, codes, [own for *_, own in answers])


def random_answers(count=40, most=3, seed=0):
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        text = "".join(chance.choice(WORDS) for _ in range(24))
        first = chance.randrange(16)
        last = first + chance.randrange(8)
        start = min(max(first + chance.randrange(-2, 3), 0), 20)
        cut = [text[start : start + chance.randrange(4, 9)] for _ in range(most)]
        found.append((text, first, last, tuple(dict.fromkeys(cut))))
    return found


def answers_of(given):
    return [(text[first : last + 1], own) for text, first, last, own in given]


def test_f1_is_worked_by_hand():
    # The longest common run is 乙丙 of three and of four characters.
    scores, targets = problem([("甲乙丙丁", 0, 2, ("乙丙丁戊",))])
    assert SpanF1().value(scores, targets) == pytest.approx(2 * 2 / (3 + 4))
    # Punctuation does not count, and 3d is one word.
    scores, targets = problem([("《甲》3D乙", 0, 5, ("甲3d乙",))])
    assert SpanF1().value(scores, targets) == 1.0


def official_f1(answers, prediction):
    """`calc_f1_score` of cmrc2018_evaluate.py for Chinese characters alone."""
    best = 0
    for answer in answers:
        table, most = {}, 0
        for i, one in enumerate(answer):
            for j, other in enumerate(prediction):
                table[i, j] = table.get((i - 1, j - 1), 0) + 1 if one == other else 0
                most = max(most, table[i, j])
        if most:
            precision, recall = most / len(prediction), most / len(answer)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_f1_is_that_of_the_official_script(seed):
    given = random_answers(seed=seed)
    expected = [official_f1(own, said) for said, own in answers_of(given)]
    found = SpanF1().value(*problem(given))
    assert found == pytest.approx(sum(expected) / len(expected), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_bleu_is_that_of_torchmetrics(seed):
    given = random_answers(seed=seed)
    pairs = answers_of(given)
    theirs = BLEUScore(n_gram=4)(
        [" ".join(said) for said, _ in pairs],
        # Of two lengths that are as near it takes the first, and all others the less.
        [[" ".join(one) for one in sorted(own, key=len)] for _, own in pairs],
    )
    assert theirs > 0.1
    assert Bleu4().value(*problem(given)) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_rouge_is_that_of_torchmetrics(seed):
    given = random_answers(most=1, seed=seed)
    pairs = answers_of(given)
    judge = ROUGEScore(
        rouge_keys="rougeL", normalizer=lambda text: text, tokenizer=list
    )
    theirs = judge([said for said, _ in pairs], [own[0] for _, own in pairs])
    found = RougeL(beta=1.0).value(*problem(given))
    assert found == pytest.approx(float(theirs["rougeL_fmeasure"]), abs=1e-6)


def test_rouge_weighs_recall_and_takes_the_best_of_each():
    # Subsequences: 3 of 3 and 3 of 4; 1 of 3 and 1 of 1.
    scores, targets = problem([("甲乙丙", 0, 2, ("甲丁乙丙", "甲"))])
    precision, recall, square = 3 / 3, 1 / 1, 1.2**2
    expected = (1 + square) * precision * recall / (recall + square * precision)
    assert RougeL().value(scores, targets) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [SpanF1(), RougeL(), Bleu4()])
def test_right_answers_are_best_and_wrong_ones_worst(metric):
    right = [("甲乙丙丁戊己", 1, 5, ("乙丙丁戊己",))] * 2
    wrong = [("甲乙丙丁戊己", 0, 0, ("庚辛壬癸子",))] * 2
    assert metric.value(*problem(right)) == pytest.approx(1.0)
    assert metric.value(*problem(wrong)) == 0.0
    both = [torch.stack([problem(right)[0], problem(right)[0] * 0])]
    values = metric.values(both[0], problem(right)[1])
    assert values[0] == pytest.approx(1.0) and values[1] < 1


@pytest.mark.parametrize("metric", [SpanF1(), RougeL(), Bleu4()])
def test_wrong_input_is_refused(metric):
    scores, targets = problem(random_answers(4))
    with pytest.raises(DataError, match="answers as `pack_spans` gives them"):
        metric.value(scores, torch.zeros(4))
    with pytest.raises(ShapeError, match="not of inputs with 23 places"):
        metric.value(scores[..., 1:], targets)
    with pytest.raises(MetricError, match="NaN"):
        metric.value(scores * torch.nan, targets)


def test_torchmetrics_is_asked_for_characters():
    assert re.fullmatch("[甲乙丙丁戊己]+", random_answers(1)[0][0])

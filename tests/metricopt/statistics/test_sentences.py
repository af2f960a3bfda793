"""Statistics of translations against loops, smooth ones, and what they know of BLEU."""

import math

import pytest
import torch

from metricopt.metrics.sentences import CorpusBleu
from metricopt.ranking import rank_correlation
from metricopt.statistics.sentences import ORDERS, SentenceStatistics
from metricopt.structured.sentences import listed
from tests.metricopt.metrics.test_sentences import random_texts
from tests.metricopt.structured.test_sentences import (
    LENGTH,
    numbers,
    outputs_of,
    packed,
    said,
)

TEXTS = random_texts(150, seed=7)


def grams(own, order):
    return [tuple(own[at : at + order]) for at in range(len(own) - order + 1)]


def test_counts_are_those_of_a_loop():
    references, answers = zip(*TEXTS, strict=True)
    outputs = said(*answers)[None]
    found = SentenceStatistics().exact(outputs, packed(*references))
    common, every = [0] * ORDERS, [0] * ORDERS
    for reference, answer in TEXTS:
        for at in range(ORDERS):
            own, other = (grams(numbers(t), at + 1) for t in (answer, reference))
            common[at] += sum(gram in other for gram in own)
            every[at] += len(own)
    own = sum(len(numbers(answer)) for answer in answers)
    other = sum(len(numbers(reference)) for reference in references)
    expected = [count / len(TEXTS) for count in (*common, own, other)]
    assert found["counts"][0].tolist() == pytest.approx(expected)
    precisions = [a / b for a, b in zip(common, every, strict=True)]
    assert found["precisions"][0].tolist() == pytest.approx(precisions)
    mean = sum(map(math.log, precisions)) / ORDERS + min(0, 1 - other / own)
    assert found["bleu of pieces"].item() == pytest.approx(math.exp(mean))
    assert all(0 <= value <= 1 for value in found["shares"][0].tolist())


def test_weights_count_sentences():
    references, answers = zip(*TEXTS[:3], strict=True)
    kind, outputs = SentenceStatistics(), said(*answers)[None]
    weights = torch.tensor([[0.0, 2.0, 1.0]])
    found = kind.exact(outputs, packed(*references), weights)
    twice = (1, 1, 2)
    again = kind.exact(
        said(*(answers[at] for at in twice))[None],
        packed(*(references[at] for at in twice)),
    )
    for name, values in found.items():
        assert values.tolist() == [pytest.approx(again[name][0].tolist())], name


def unsure(count=12, sharp=1.0, seed=0):
    """Outputs of scores, with gradient, and the sentences they are compared with."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(count, LENGTH, 8, generator=generator)
    references = [reference for reference, _ in TEXTS[:count]]
    targets = packed(*references)
    for row, reference in zip(scores, references, strict=True):
        for place, number in enumerate(numbers(reference)):
            row[place, number - 3] += 2.0
    scores = (sharp * scores).requires_grad_()
    asked = torch.full((count, LENGTH), -1)
    pieces = listed(scores.log_softmax(-1), asked, 8, 3)
    both = torch.cat([pieces[:, :1].detach(), pieces], 1)
    return scores, outputs_of(both), targets


def test_smooth_statistics_have_a_gradient_and_end_in_the_exact_ones():
    kind = SentenceStatistics()
    scores, outputs, targets = unsure()
    smooth = kind.smooth(outputs[None], targets)
    (slope,) = torch.autograd.grad(smooth["bleu of pieces"].sum(), scores)
    assert slope.isfinite().all() and slope.abs().sum() > 0
    _, outputs, targets = unsure(sharp=400.0)
    exact, smooth = (
        part(outputs[None].detach(), targets) for part in (kind.exact, kind.smooth)
    )
    for name, values in exact.items():
        assert torch.allclose(values, smooth[name], atol=1e-4), name


def test_bleu_of_pieces_ranks_as_bleu():
    kind, metric = SentenceStatistics(), CorpusBleu()
    known, values = [], []
    for seed in range(12):
        _, outputs, targets = unsure(30, seed=seed)
        known.append(kind.exact(outputs[None], targets)["bleu of pieces"].squeeze())
        values.append(metric.value(outputs, targets))
    assert rank_correlation(torch.stack(known), torch.tensor(values)) > 0.7


def test_other_targets_have_none():
    outputs, targets = said("the cat")[None], packed("the cat")
    assert SentenceStatistics().suits(outputs, targets)
    assert not SentenceStatistics().suits(outputs, torch.zeros(1, dtype=torch.int64))

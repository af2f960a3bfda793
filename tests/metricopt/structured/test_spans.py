"""Packed spans: what is kept, what is read, and what is refused."""

import pytest
import torch

from metricopt.errors import DataError, ShapeError
from metricopt.losses.spans import SpanLoss, span_log_probabilities
from metricopt.statistics.spans import SpanStatistics
from metricopt.structured.spans import are_spans, best_spans, pack_spans, text, unpacked


def codes(*texts, length=8):
    found = torch.zeros(len(texts), length, dtype=torch.int64)
    for row, one in zip(found, texts, strict=True):
        row[2 : 2 + len(one)] = torch.tensor([ord(each) for each in one])
    return found


def two():
    return pack_spans(
        [(3, 4), (2, 2)], codes("甲乙丙", "丁戊"), [("乙丙",), ("丁", "丁戊")]
    )


def test_what_is_packed_is_there():
    spans = unpacked(two(), 8)
    assert are_spans(two()) and not are_spans(two().float())
    assert spans.first.tolist() == [3, 2] and spans.last.tolist() == [4, 2]
    assert text(spans.characters[0]) == "甲乙丙"
    assert [text(part) for part in spans.references[1]] == ["丁", "丁戊", ""]


def test_the_best_span_is_that_of_a_loop():
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(4, 2, 2, 8, generator=generator)
    targets = two()
    found = best_spans(scores, targets.expand(4, *targets.shape), most=3)
    known = unpacked(targets, 8).characters > 0
    for row in range(4):
        for place in range(2):
            best = max(
                (
                    (scores[row, place, 0, i] + scores[row, place, 1, j]).item(),
                    (i, j),
                )
                for i in range(8)
                for j in range(i, min(i + 3, 8))
                if known[place, i] and known[place, j]
            )
            assert tuple(found[row, place].tolist()) == best[1]


def test_the_loss_is_cross_entropy_of_both_places():
    scores = torch.randn(2, 2, 8, generator=torch.Generator().manual_seed(1))
    inside = scores[0, :, 2:5].log_softmax(-1)
    expected = torch.stack([inside[0, 1], inside[1, 2]])
    torch.testing.assert_close(span_log_probabilities(scores, two())[0], expected)
    both = SpanLoss().row_losses(
        scores.expand(3, 2, 2, 8), two().expand(3, *two().shape)
    )
    assert both.shape == (3,) and torch.allclose(both, SpanLoss()(scores, two()))


@pytest.mark.parametrize("smooth", [False, True])
def test_statistics_are_of_the_overlap(smooth):
    kind, targets = SpanStatistics(), two()
    scores = torch.zeros(1, 2, 2, 8)
    scores[0, 0, 0, 2] = scores[0, 0, 1, 3] = 80.0  # 甲乙 for 乙丙
    scores[0, 1, 0, 2] = scores[0, 1, 1, 2] = 80.0  # 丁 for 丁
    found = kind.groups(scores, targets, None, smooth=smooth)
    assert kind.suits(scores, targets)
    assert found["mean overlap"].item() == pytest.approx(0.75, abs=1e-4)
    assert found["means"][0].tolist() == pytest.approx([0.75, 0.75, 0.75, 1], abs=1e-4)
    weights = torch.tensor([[0.0, 2.0]])
    alone = kind.groups(scores, targets, weights, smooth=smooth)
    assert alone["mean overlap"].item() == pytest.approx(1.0, abs=1e-4)


def test_smooth_statistics_have_a_gradient():
    scores = torch.randn(1, 2, 2, 8).requires_grad_()
    smooth = SpanStatistics().smooth(scores, two())["mean overlap"].sum()
    (gradient,) = torch.autograd.grad(smooth, scores)
    assert gradient.isfinite().all() and gradient.abs().max() > 0


def test_what_is_no_span_is_refused():
    given = codes("甲乙丙")
    with pytest.raises(DataError, match="1 answers are not where answers can be"):
        pack_spans([(0, 4)], given, [("乙",)])
    with pytest.raises(DataError, match="places 4 to 3 of 8"):
        pack_spans([(4, 3)], given, [("乙",)])
    with pytest.raises(DataError, match="needs 1 to 3 references that are not empty"):
        pack_spans([(3, 3)], given, [("",)])
    with pytest.raises(DataError, match="needs 1 to 3 references"):
        pack_spans([(3, 3)], given, [()])
    with pytest.raises(ShapeError, match="need 1 answers and lists of references"):
        pack_spans([(3, 3)] * 2, given, [("乙",)])
    with pytest.raises(ShapeError, match="not of inputs with 7 places"):
        unpacked(two(), 7)

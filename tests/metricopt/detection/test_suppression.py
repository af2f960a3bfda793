"""Suppression of many groups at once, against torchvision's, group by group."""

import pytest
import torch
from torchvision.ops import batched_nms

from metricopt.detection import detections
from metricopt.detection.detections import suppressed
from tests.metricopt.drawn import seeded


def boxes(count, groups, seed):
    generator = seeded(seed)
    corner = torch.rand(count, 2, generator=generator) * 40
    size = 5 + torch.rand(count, 2, generator=generator) * 20
    score = torch.rand(count, generator=generator)
    group = torch.randint(0, groups, (count,), generator=generator)
    return torch.cat([corner, corner + size], 1), score, group


@pytest.mark.parametrize("overlap", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("count", "groups"), [(1, 1), (60, 40), (900, 30), (900, 2)])
def test_the_same_boxes_remain_in_the_same_order(count, groups, overlap):
    for seed in range(3):
        box, score, group = boxes(count, groups, seed)
        expected = batched_nms(box, score, group, overlap)
        assert torch.equal(suppressed(box, score, group, overlap), expected)


def test_the_memory_at_a_time_does_not_matter(monkeypatch):
    box, score, group = boxes(500, 20, 0)
    whole = suppressed(box, score, group, 0.5)
    monkeypatch.setattr(detections, "COMPARED_AT_ONCE", 1)
    assert torch.equal(suppressed(box, score, group, 0.5), whole)


def test_boxes_equally_sure_none_and_without_area():
    box = torch.tensor([[0.0, 0, 10, 10]]).repeat(3, 1)
    group = torch.tensor([0, 0, 1])
    assert suppressed(box, torch.ones(3), group, 0.5).tolist() == [0, 2]
    nothing = suppressed(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0).long(), 0.5)
    assert nothing.tolist() == []
    flat = torch.tensor([[3.0, 3, 3, 3]]).repeat(2, 1)
    kept = suppressed(flat, torch.tensor([0.5, 0.6]), torch.zeros(2).long(), 0.5)
    assert kept.tolist() == [1, 0]

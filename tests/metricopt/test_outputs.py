"""Outputs that are embeddings, and those that only look like it."""

import pytest
import torch
from torch.nn.functional import normalize

from metricopt.reading.outputs import are_embeddings
from tests.metricopt.drawn import seeded


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (
            normalize(torch.randn(5, 3, generator=seeded(0))),
            True,
        ),
        (torch.ones(5, 1), False),
        (torch.tensor([[3.0, 4.0], [0.6, 0.8]]), False),
        (torch.eye(4), False),  # a softmax that is sure
        (-torch.eye(4), True),
        (normalize(torch.ones(4, 3)), True),
    ],
)
def test_embeddings_have_unit_length_and_are_no_probabilities(outputs, expected):
    assert are_embeddings(outputs) is expected
    assert are_embeddings(outputs[None]) is expected

"""Outputs and labels that the tests of statistics share."""

import torch
from torch.nn.functional import one_hot

from tests.metricopt.drawn import seeded

N = 400


def situations(classes, rows=3, examples=N):
    """Outputs [rows, N, C] of one network with its outputs shifted, and targets."""
    targets = torch.randint(max(2, classes), (examples,), generator=seeded(9))
    outputs = torch.randn(examples, classes, generator=seeded(10))
    if classes > 1:
        outputs += 1.5 * one_hot(targets, classes)
    else:
        outputs += 1.5 * targets[:, None] - 0.7
    return outputs + 0.5 * torch.randn(rows, 1, classes, generator=seeded(1)), targets

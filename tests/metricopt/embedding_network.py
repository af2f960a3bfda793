"""A small network with embeddings of classes it has not learned, for tests."""

from functools import cache

import torch
from torch import nn
from torch.nn.functional import normalize

from metricopt import FiLM, NetworkTask, Split
from metricopt.metrics.base import Metric
from metricopt.statistics.retrieval import RetrievalStatistics
from metricopt.tasks.encoding import encoded
from metricopt.tasks.judge import Judge
from metricopt.tasks.observed_statistics import ObservedStatistics
from tests.metricopt.drawn import seeded

CHANNELS, SIDE = 8, 4


class Normalised(nn.Module):
    """Embeddings of length 1."""

    def forward(self, inputs):
        return normalize(inputs, dim=-1)


class FirstHit(Metric):
    """The share of queries whose nearest neighbour has their label."""

    name = "first hit"
    higher_is_better = True
    reads = "embeddings"

    def _value(self, outputs, targets):
        near = outputs @ outputs.T
        near.fill_diagonal_(-torch.inf)
        return (targets[near.argmax(1)] == targets).double().mean()


def images(classes, each, *, seed=0, first=0):
    """Images of classes whose pattern lies in half of the channels, with noise."""
    targets = torch.arange(classes).repeat_interleave(each)
    patterns = torch.randn(classes, CHANNELS, 1, 1, generator=seeded(seed))
    patterns[:, CHANNELS // 2 :] = 0
    shape = (len(targets), CHANNELS, SIDE, SIDE)
    noise = torch.randn(shape, generator=seeded(seed + 1))
    common = torch.randn(len(targets), CHANNELS, 1, 1, generator=seeded(seed + 2))
    common[:, : CHANNELS // 2] = 0
    return Split(patterns[targets] + 0.5 * noise + 2 * common, targets + first)


@cache
def network():
    """A convolution whose channels FiLM scales; half of them only disturb."""
    torch.manual_seed(0)
    convolution = nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False)
    nn.init.eye_(convolution.weight[..., 0, 0])
    return nn.Sequential(
        convolution,
        nn.BatchNorm2d(CHANNELS),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        Normalised(),
    ).eval()


def together(outputs, targets):
    """A loss that pulls images of a class together."""
    near = outputs @ outputs.T
    same = (targets[:, None] == targets).float()
    return (near * (1 - same)).mean() - (near * same).sum() / same.sum()


def embedding_task(classes=20, each=6, metric=None):
    split = images(classes, each, first=500)
    adapter = FiLM(network(), split.inputs[:2], form="direct")
    return NetworkTask(
        adapter,
        together,
        metric or FirstHit(),
        train=images(40, 6, seed=10),
        observe=split,
    )


def observed(classes=20, each=6):
    """Statistics of an observe split of so many classes."""
    split = images(classes, each, first=500)
    adapter = FiLM(network(), split.inputs[:2], form="direct")
    judge = Judge(adapter, encoded(adapter, split))
    return ObservedStatistics(judge, RetrievalStatistics().fitted(split.targets))

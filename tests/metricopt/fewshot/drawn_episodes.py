"""Episodes drawn by their numbers: lines to fit, and blobs to tell apart."""

import torch
from torch import nn

from metricopt.fewshot import Episodes, MetaLearner
from metricopt.geometry import BlockIAF

WAYS = 3


def generator(*names):
    return torch.Generator().manual_seed(hash(names) % 2**40)


def line(number):
    """Six points of a line through a point near (0, 1), as four tensors."""
    own = generator(number)
    x, slope = torch.randn(6, 1, generator=own), torch.randn(1, generator=own)
    return x[:3], slope * x[:3] + 1, x[3:], slope * x[3:] + 1


def lines(numbers):
    return Episodes.stacked(map(line, numbers))


def blobs_of(number):
    """Two support and three query points of each of three blobs in four dimensions."""
    own = generator(number)
    centres = 2 * torch.randn(WAYS, 1, 4, generator=own)
    points = centres + 0.3 * torch.randn(WAYS, 5, 4, generator=own)
    labels = torch.arange(WAYS)[:, None].expand(-1, 5)
    support, query = (slice(2), slice(2, None))
    return tuple(
        each[:, part].flatten(0, 1)
        for part in (support, query)
        for each in (points, labels)
    )


def blobs(numbers):
    return Episodes.stacked(map(blobs_of, numbers))


def perceptron(inputs, outputs, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, 6), nn.Tanh(), nn.Linear(6, outputs))


def iaf(phi):
    return BlockIAF(phi, generator=torch.Generator().manual_seed(0))


def line_learner(geometry=iaf, **settings):
    network = perceptron(1, 1)
    return MetaLearner(network, nn.functional.mse_loss, geometry, **settings)


def blob_learner(geometry=iaf, **settings):
    network = perceptron(4, WAYS)
    return MetaLearner(network, nn.functional.cross_entropy, geometry, **settings)

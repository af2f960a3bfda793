"""Small trainings that the tests of the loop are about."""

import torch
from torch import nn

from baselines.losses.contract import make_loss
from baselines.losses.cross_entropy import cross_entropy
from baselines.training.batches import PermutedBatches, SampledBatches
from baselines.training.loop import TrainingRun
from baselines.training.optimization import Training
from metricopt.process.seeding import make_generator
from tests.baselines.toy_images import ToyImages, image_network


def make_run(network, data, *, loss=cross_entropy, seed="a", balanced=True, **more):
    """Train on a table, 10 steps an epoch."""
    observe = more.pop("observe", data.observe)
    settings = {"epochs": 8, "learning_rate": 0.02} | more
    return TrainingRun(
        network,
        loss,
        SampledBatches(data.train, 32, balanced=balanced),
        Training(**settings),
        generator=make_generator(seed),
        observe=observe,
    )


def image_run(training, loss="cross-entropy"):
    """Train on images, 4 steps an epoch."""
    return TrainingRun(
        image_network(),
        make_loss(loss, classes=4),
        PermutedBatches(ToyImages(), 16),
        training,
        generator=make_generator("images"),
    )


def weights(thing):
    """Copies of what a network, or a run with all it learns, holds."""
    if isinstance(thing, TrainingRun):
        learned = thing.loss if isinstance(thing.loss, nn.Module) else nn.Module()
        return weights(thing.network) | weights(learned)
    return {name: value.clone() for name, value in thing.state_dict().items()}


def same(first, second):
    """Whether two of these are equal to the bit."""
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], value) for name, value in second.items())

"""Images small enough to train on in a moment, augmented by random shifts."""

import torch
from torch import nn

from baselines.training.batches import WHOLE, PermutedBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric

CLASSES = 4
TRAINING = Training(3, 0.05, optimizer="sgd")
"""12 steps of 16 examples."""


class ToyImages:
    """Grey squares whose brightness tells the class; shifted when trained on."""

    def __init__(self, per_class=16, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.targets = torch.arange(CLASSES).repeat(per_class)
        noise = torch.randn(len(self.targets), 1, 8, 8, generator=generator)
        self.inputs = noise + 1.5 * self.targets[:, None, None, None] - 2
        self.augmentations = 0

    def __len__(self):
        return len(self.targets)

    def batch(self, index):
        return self.inputs[index]

    def augmented(self, index, generator, share=WHOLE):
        self.augmentations += 1
        shift = int(torch.randint(8, (), generator=generator))
        return self.inputs[index[share]].roll(shift, dims=3)


def image_network(outputs=CLASSES, seed=0):
    """A small convolutional network without dropout."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 3 * 3, outputs),
        )


def train_on_images(
    method, training=TRAINING, *, metric="mcr", observe=None, seed="toy"
):
    """Train by a network method; return the result and what counted its queries."""
    validation = Validation(make_metric(metric), observe or ToyImages(seed=1))
    result = method.train(
        image_network(),
        PermutedBatches(ToyImages(), 16),
        validation,
        training=training,
        generator=make_generator(seed),
    )
    return result, validation

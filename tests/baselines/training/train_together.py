"""A small training, by one process or by several under `torchrun`.

`python -m tests.baselines.training.train_together FOLDER [EPOCH]` writes its
losses and weights; after that epoch the process kills itself.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

from baselines.training.batches import PermutedBatches, SampledBatches
from baselines.training.checkpoint import Checkpoint
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.team import joined
from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import Split
from tests.baselines.toy_images import ToyImages, image_network

EPOCHS, BATCH = 4, 16
KINDS = ("permuted", "whole", "sampled", "balanced")
"""Only the first one may be killed; "whole" is the same without."""
NORMED = "normed"
"""With batch norm, which makes of shares what it does not make of a whole, and with the
best epoch by observe."""


class KillAfter(Hooks):
    """Kills its process at the first step after an epoch, which has its checkpoint."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def before_step(self, step, steps):
        if self.epoch and step == self.epoch * steps // EPOCHS:
            os.kill(os.getpid(), signal.SIGKILL)


def network():
    """A network without batch norm, whose statistics would be of a share."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 4))


def observed():
    images = ToyImages()
    return Split(images.inputs, images.targets)


def batches(kind):
    images = ToyImages()
    if kind in ("permuted", "whole", NORMED):
        return PermutedBatches(images, BATCH)
    return SampledBatches(observed(), BATCH, balanced=kind == "balanced")


def main(folder, epoch=None):
    torch.set_num_threads(1)
    with joined() as team:
        for kind in (*KINDS, NORMED):
            normed = kind == NORMED
            run = TrainingRun(
                image_network() if normed else network(),
                nn.CrossEntropyLoss(),
                batches(kind),
                Training(EPOCHS, 0.05, optimizer="sgd", keep_best=normed),
                observe=observed() if normed else None,
                generator=make_generator("together"),
            )
            hooks = KillAfter(epoch) if kind == "permuted" else None
            checkpoint = Checkpoint(folder / f"{kind}.ckpt", kind)
            train(run, hooks=hooks, checkpoint=checkpoint)
            name = f"{kind}-{team.rank}-of-{team.size}.pt"
            state = {"losses": run.losses, "weights": run.network.state_dict()}
            torch.save(state, folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))

"""What ALA costs over plain training: `python -m benchmarks.speed.adaptive_loss`.

A training with ALA is held against one with cross-entropy and as many steps, at the
paper's period and at that of tier local, all in this one run.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.network_methods.contract import NetworkMethod
from baselines.network_methods.surrogate_loss import SurrogateLoss
from baselines.training.batches import Batches, PermutedBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from benchmarks.data.registry import resolve_variant
from benchmarks.networks.contract import build_network
from benchmarks.problems.images.images import load_splits
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.pretrained.weights import device
from benchmarks.runs.spec import Unit, metric_of
from benchmarks.speed.measurement import Line, as_table, interleaved
from metricopt.errors import DataError
from metricopt.process.seeding import make_generator

BATCH = 128


@dataclass(frozen=True)
class Work:
    """What is timed.

    Attributes:
        network: name of an image network.
        problem: the images.
        steps: number of steps, about. The period of 200 is rewarded from the third on.
        repeats: times everything is measured, after once that is not; the best counts.
    """

    network: str
    problem: ImageProblem
    steps: int = 800
    repeats: int = 1


@dataclass(frozen=True)
class Place:
    """Where networks are trained.

    Attributes:
        network: that a training begins with.
        batches: an epoch of them.
        validation: counts the queries.
        training: length of the training.
    """

    network: nn.Module
    batches: Batches
    validation: Validation
    training: Training

    def run(self, method: NetworkMethod) -> None:
        """Train a copy of the network."""
        generator = make_generator("speed of ALA")
        method.train(
            self.network,
            self.batches,
            self.validation,
            training=self.training,
            generator=generator,
        )


def of_images(work: Work, steps: int) -> Place:
    """Return a place where the image network is trained for as many steps."""
    splits = load_splits(work.problem, 0)
    train, observe = splits.train.to(device()), splits.observe.to(device())
    network = build_network(
        work.network, lambda features: nn.Linear(features, splits.classes), 0
    )
    size = min(BATCH, len(train) // 4)
    batches = PermutedBatches(train, size)
    epochs = max(1, steps // batches.steps_per_epoch)
    training = Training(
        epochs,
        0.1,
        optimizer="sgd",
        precision="bfloat16",
        channels_last=True,
        keep_best=False,
    )
    validation = Validation(metric_of(Unit("mcr")), observe)
    return Place(network.to(device()), batches, validation, training)


def overhead(work: Work) -> list[Line]:
    """Return the lines of one network: ALA over cross-entropy."""
    place = of_images(work, work.steps)
    forms = {
        "period 200, metric measured 4 times in it": AdaptiveLossAlignment(),
        "period 20, measured once": AdaptiveLossAlignment(
            period=20, measured=1, updates=10
        ),
    }
    methods: list[NetworkMethod] = [SurrogateLoss(), *forms.values()]
    plain, *others = _timed(place, methods, work.repeats)
    observed = len(place.validation.observe)
    return [
        (f"plain training of {work.network}", f"{plain:.1f} s"),
        *(
            (
                f"ALA, {name}; {observed:,} images observed",
                f"{seconds / plain:.2f} x ({seconds:.1f} s)",
            )
            for name, seconds in zip(forms, others, strict=True)
        ),
    ]


def available() -> Work:
    """Return the work on CIFAR-10, or on digits where that is not there."""
    try:
        variant = resolve_variant("cifar10", offline=True)
    except DataError:
        variant = resolve_variant("digits", offline=True)
        return Work("digit-net", ImageProblem("digits", variant))
    return Work("resnet8", ImageProblem("cifar10", variant, max_examples=BATCH * 50))


def main(work: Work | None = None) -> int:
    """Measure and print the table; return 0."""
    work = work or available()
    started = time.perf_counter()
    print(
        f"torch {torch.__version__}, {os.cpu_count()} cores {platform.machine()}, "
        f"{device()}, {work.problem.dataset}, best of {work.repeats}",
        flush=True,
    )
    print(as_table(overhead(work)))
    print(f"{time.perf_counter() - started:.0f} seconds in all")
    return 0


def _timed(place: Place, methods: Sequence[NetworkMethod], repeats: int) -> list[float]:
    works: list[Callable[[], None]] = [partial(place.run, each) for each in methods]
    return interleaved(works, repeats)


if __name__ == "__main__":
    sys.exit(main())

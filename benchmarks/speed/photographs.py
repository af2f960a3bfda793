"""How fast photographs are trained on: `python -m benchmarks.speed.photographs`.

Mini-batches of photographs, decoded whenever they are needed or once into a file,
against the steps of a network on them: the slower one is the limit. And an epoch by one
process against one by two under `torchrun`, with the same mini-batches. Side by side in
this one run; what else runs on the machine slows all of it.
"""

import argparse
import io
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from baselines.training.batches import PermutedBatches
from baselines.training.loop import TrainingRun
from baselines.training.optimization import Training
from baselines.training.team import joined
from benchmarks.data.files.decoded import LazyPixels, pixels
from benchmarks.data.files.drawn import CORNERS, HUES, shape_png
from benchmarks.data.files.readers import Reader
from benchmarks.data.folders.contract import FolderImages
from benchmarks.networks.contract import build_network
from benchmarks.problems.device import device
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.speed.measurement import Measurement, as_table
from metricopt.errors import MetricOptError
from metricopt.process.seeding import make_generator

MODULE = "benchmarks.speed.photographs"
WIDE, HIGH = 500, 375
"""Pixels of the usual photograph of ImageNet."""
FASTER = 1.0
"""How many images should be read for one that is trained on."""


@dataclass(frozen=True)
class Work:
    """What is timed.

    Attributes:
        network: name of an image network.
        side: pixels of the square images.
        images: of the data set.
        batch_size: images of one mini-batch, over all processes.
    """

    network: str
    side: int
    images: int
    batch_size: int

    def run(self, examples: Photographs) -> TrainingRun:
        """Return a training of the network."""

        def head(features: int) -> nn.Module:
            return nn.Linear(features, len(CORNERS))

        return TrainingRun(
            build_network(self.network, head, 0),
            nn.CrossEntropyLoss(),
            PermutedBatches(examples.to(device()), self.batch_size),
            Training(1, 0.01, optimizer="sgd", channels_last=True, keep_best=False),
            generator=make_generator("speed of photographs"),
        )


class _Drawn(Reader):
    """Photographs of the usual size: shapes, enlarged, in JPEG; kept in memory."""

    def __init__(self, images: int) -> None:
        from PIL import Image

        self._files: dict[str, bytes] = {}
        for number in range(images):
            path = f"{number}.JPEG"
            shape = shape_png(number % HUES, number % len(CORNERS), path)
            content = io.BytesIO()
            large = Image.open(io.BytesIO(shape)).resize((WIDE, HIGH))
            large.save(content, "JPEG", quality=90)
            self._files[path] = content.getvalue()

    @property
    def sizes(self) -> Mapping[str, int]:
        return {path: len(content) for path, content in self._files.items()}

    def read(self, path: str) -> bytes:
        return self._files[path]


@cache
def drawn(images: int) -> FolderImages:
    """Return a data set of photographs that are drawn now."""
    reader = _Drawn(images)
    targets = torch.arange(images) % len(CORNERS)
    names = tuple(map(str, range(len(CORNERS))))
    paths = tuple(reader.sizes)
    return FolderImages("speed", "0" * 64, names, targets, paths, images, reader)


def examples_of(work: Work, *, lazy: bool) -> Photographs:
    """Return the photographs, decoded whenever they are needed or from a file."""
    data = drawn(work.images)
    source = LazyPixels(data, work.side) if lazy else pixels(data, work.side)
    return Photographs(source, torch.arange(work.images), data.targets)


def read_rate(work: Work, *, lazy: bool) -> float:
    """Return how many augmented images a second mini-batches hold."""
    batches = PermutedBatches(examples_of(work, lazy=lazy), work.batch_size)
    generator = make_generator("speed of photographs", "reading")
    started, count = time.perf_counter(), 0
    for inputs, _ in batches.epoch(generator):
        count += len(inputs)
    return count / (time.perf_counter() - started)


def train_rate(work: Work) -> float:
    """Return how many images a second the network is trained on, without reading."""
    run = work.run(examples_of(work, lazy=False))
    (inputs, targets), *_ = run.batches.draw(1, make_generator("one"))
    run.network.train()

    def step() -> None:
        loss = run.loss(run.forward(inputs), targets)
        run.optimizer.zero_grad()
        loss.backward()
        run.optimizer.step()

    step()
    started = time.perf_counter()
    for _ in range(2):
        step()
    if inputs.is_cuda:
        torch.cuda.synchronize()
    return 2 * len(inputs) / (time.perf_counter() - started)


def reading(work: Work) -> list[Measurement]:
    """Return the lines of reading, each against the network's need."""
    need = train_rate(work)
    what = f"{work.network}, {work.side} x {work.side} pixels"
    lines = [Measurement(f"training of {what}", f"{need:.0f} images/s")]
    for name, lazy in (("decoded when needed", True), ("from a file", False)):
        found = read_rate(work, lazy=lazy)
        gain = found / need
        lines.append(
            Measurement(
                f"photographs {name}",
                f"{found:.0f} images/s, {gain:.1f} x the need",
                f">= {FASTER:.0f} x",
                gain >= FASTER,
            )
        )
    return lines


def by_processes(work: Work, processes: int) -> float:
    """Return the seconds of an epoch by so many processes under `torchrun`.

    Raises:
        MetricOptError: if a process fails.
    """
    threads = max(1, (os.cpu_count() or 1) // processes)
    numbers = (work.side, work.images, work.batch_size)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(processes), "-m", MODULE, "--epoch"),
            *(work.network, *map(str, numbers)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise MetricOptError(f"an epoch by {processes} processes: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


def epoch(work: Work) -> None:
    """Train for an epoch, in as many processes as there are, and print its seconds."""
    with joined() as team:
        run = work.run(examples_of(work, lazy=False))
        run.run_epoch()
        if team.leads:
            print(run.seconds[0])


def together(work: Work) -> Measurement:
    """Return the line of one process against two."""
    one, two = (by_processes(work, processes) for processes in (1, 2))
    return Measurement(
        f"epoch of {work.images} images, mini-batches of {work.batch_size}",
        f"{one:.1f} s by one process, {two:.1f} s by two: {one / two:.2f} x",
    )


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="nasnet-a-mobile")
    parser.add_argument("--side", type=int, default=224, help="pixels of the images")
    parser.add_argument("--images", type=int, default=128, metavar="N")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epoch", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure and print the table; return 0, also where a target is missed."""
    asked = arguments(given)
    if asked.epoch:
        network, *numbers = asked.epoch
        epoch(Work(network, *map(int, numbers)))
        return 0
    work = Work(asked.network, asked.side, asked.images, asked.batch_size)
    print(
        f"torch {torch.__version__}, {os.cpu_count()} cores {platform.machine()}, "
        f"device {device()}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as cache:
        # Nothing that is made here stays.
        os.environ["METRICOPT_CACHE"] = cache
        print(as_table([*reading(work), together(work)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""How fast embeddings are fine-tuned: `python -m benchmarks.speed.embeddings`.

SqueezeNet 1.1 with FiLM on its last stage, FastAP, random images: a step and a query
through the whole network, and from cached features, side by side in this one run.
"""

import os
import platform
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import make_embedding_loss
from benchmarks.networks.embedding.contract import build_embedding_network
from benchmarks.speed.measurement import Measurement, as_table
from benchmarks.speed.timing import interleaved
from metricopt.adapters.film import FiLM
from metricopt.process.seeding import make_generator

BATCH, SIDE, SIZE, PER_CLASS = 64, 128, 128, 8
REPEATS = 3


def measure(network: str = "squeezenet1_1", side: int = SIDE) -> list[Measurement]:
    """Return every line of the table.

    Args:
        network: name of an embedding network; its weights are random.
        side: of the images, in pixels.
    """
    theta = build_embedding_network(network, SIZE, 0).eval()
    generator = make_generator("speed of embeddings")
    images = torch.randn(BATCH, 3, side, side, generator=generator)
    images = images.contiguous(memory_format=torch.channels_last)
    targets = torch.arange(BATCH) // PER_CLASS
    adapter = FiLM(theta, images[:2], sites=theta.sites, size=SIZE)
    features = adapter.encode(images)
    loss = make_embedding_loss("fastap", classes=BATCH // PER_CLASS, size=SIZE)
    phi = nn.Parameter(torch.zeros(adapter.size))

    def whole() -> Tensor:
        with adapter.attach(phi):
            found: Tensor = theta(images)
            return found

    def cached() -> Tensor:
        found = adapter.predict(features, phi[None])
        assert isinstance(found, Tensor)
        return found[0]

    def step(outputs: Callable[[], Tensor]) -> None:
        phi.grad = None
        loss(outputs(), targets).backward()

    def query(outputs: Callable[[], Tensor]) -> None:
        with torch.no_grad():
            outputs()

    works = [
        partial(work, place) for work in (step, query) for place in (whole, cached)
    ]
    return lines_of(interleaved(works, REPEATS))


def lines_of(seconds: Sequence[float]) -> list[Measurement]:
    """Return the lines of a step and of a query, each whole and then cached."""
    names = (f"step on {BATCH} images", f"outputs of {BATCH} images for one phi")
    return [
        Measurement(
            f"{name}, cached against whole",
            f"{before / after:.1f} x ({1000 * after:.1f} ms, {1000 * before:.1f} ms)",
        )
        for name, before, after in zip(names, seconds[::2], seconds[1::2], strict=True)
    ]


def main() -> int:
    """Measure with all threads, print the table, and return 0."""
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads of "
        f"{os.cpu_count()} cores {platform.machine()}, images of {SIDE} pixels",
        flush=True,
    )
    print(as_table(measure()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

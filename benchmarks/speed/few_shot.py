"""What few-shot learners cost to train: `python -m benchmarks.speed.few_shot`.

Episodes of images, four convolutions of 16 channels, five inner steps. Mirror descent
is held against MAML, all orders against the first one, and episodes one by one against
all at once by `vmap`. Side by side in this one run, best of three.
"""

import argparse
import os
import platform
from collections.abc import Sequence
from functools import partial

import torch
from torch.nn.functional import cross_entropy

from baselines.learners.contract import LEARNERS
from benchmarks.data.few_shot.contract import TRAIN
from benchmarks.networks.conv4 import conv4
from benchmarks.problems.episodes.images import ImageEpisodes
from benchmarks.problems.episodes.protocols import PROTOCOLS, episodes_of
from benchmarks.speed.measurement import Line, as_table, interleaved
from metricopt.fewshot.adaptation import add_meta_gradient
from metricopt.fewshot.episodes import Episodes
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.fewshot.settings import Batching
from metricopt.process.seeding import make_generator

CHANNELS, EPISODES, REPEATS = 16, 4, 3
MAML, FIRST, MIRROR = "maml", "maml-first-order", "mirror-descent"
WAYS_OF: dict[str, Batching] = {"one by one": "loop", "at once by vmap": "vmap"}


def drawn(dataset: str, ways: int) -> Episodes:
    """Return one-shot episodes of a data set, with 15 queries of a class."""
    source = ImageEpisodes(episodes_of(dataset, ways=ways, shots=1), 0)
    return source.batch(TRAIN, range(EPISODES))


def learner_of(name: str, episodes: Episodes) -> MetaLearner:
    """Return a learner with the network for some episodes."""
    network = conv4(
        channels=CHANNELS,
        inputs=episodes.query_inputs.shape[2],
        side=episodes.query_inputs.shape[-1],
        outputs=int(episodes.support_targets.max()) + 1,
        shrink=1,
        seed=0,
    )
    generator = make_generator("speed of few-shot learning")
    return LEARNERS.get(name)().make(network, cross_entropy, generator)


def compared(episodes: Episodes) -> list[Line]:
    """Return what meta-iterations on the same episodes cost, learner by learner."""
    learners = {name: learner_of(name, episodes) for name in (MAML, FIRST, MIRROR)}
    works = {
        (name, way): partial(add_meta_gradient, each, episodes, batching=batching)
        for name, each in learners.items()
        for way, batching in WAYS_OF.items()
    }
    measured = interleaved(list(works.values()), REPEATS)
    seconds = dict(zip(works, measured, strict=True))
    lines = [
        (f"{name}, {way}", f"{len(episodes) / spent:.1f} tasks/s")
        for (name, way), spent in seconds.items()
    ]
    for way in WAYS_OF:
        maml, first, mirror = (seconds[name, way] for name in (MAML, FIRST, MIRROR))
        lines.append((f"mirror descent over MAML, {way}", f"{mirror / maml:.2f} x"))
        lines.append((f"MAML in full over first order, {way}", f"{maml / first:.2f} x"))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="omniglot-small", choices=PROTOCOLS)
    parser.add_argument("--ways", type=int, default=5, metavar="N")
    asked = parser.parse_args(arguments)
    episodes = drawn(asked.dataset, asked.ways)
    side = episodes.query_inputs.shape[-1]
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} of {os.cpu_count()} "
        f"cores {platform.machine()}, {asked.dataset}, {side} pixels, {asked.ways}-way "
        f"1-shot, best of {REPEATS}",
        flush=True,
    )
    print(as_table(compared(episodes)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

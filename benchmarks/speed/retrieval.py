"""How fast exact retrieval metrics are: `python -m benchmarks.speed.retrieval`.

Recall@k and mean average precision at R of random clustered embeddings: ours, those of
an exact index of faiss, and of pytorch-metric-learning, which searches with faiss, too.
Side by side in this one run, each in a process of its own, for its peak memory; what
else runs on the machine slows all of them. Figures that differ are an error.
"""

import argparse
import multiprocessing
import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.speed.measurement import Measurement, as_table
from benchmarks.speed.timing import peak_megabytes
from metricopt.errors import MetricOptError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric

CUTS = (1, 10, 100, 1000)
PER_CLASS = 5
FULL = 60_502
"""Test images of Stanford Online Products."""
SECONDS, MEGABYTES = 60, 1_500
"""What ours may take of the full size."""
EQUAL = 1e-4
"""Greatest difference of figures: float32 orders some of the many pairs otherwise."""


@dataclass(frozen=True)
class Problem:
    """Random embeddings, and how they are judged.

    Attributes:
        examples: number N of embeddings.
        size: of an embedding.
        threads: of each contestant.
    """

    examples: int
    size: int = 512
    threads: int = 1

    def draw(self) -> tuple[Tensor, Tensor]:
        """Return embeddings [N, E] around class centres, and labels [N]."""
        generator = make_generator("speed of retrieval")
        classes = self.examples // PER_CLASS
        labels = torch.randperm(self.examples, generator=generator) % classes
        centres = torch.randn(classes, self.size, generator=generator)
        noise = torch.randn(self.examples, self.size, generator=generator)
        # Neither easy nor hopeless, whatever the size.
        scale = 0.55 * self.size**0.25
        return noise.mul_(scale).add_(centres[labels]), labels

    @property
    def cuts(self) -> list[int]:
        """The k of Recall@k that the gallery has."""
        return [k for k in CUTS if k < self.examples - 1]


@dataclass(frozen=True)
class Found:
    """What one contestant took, and its figures by the names of our metrics.

    Attributes:
        seconds: by the clock.
        cpu_seconds: of all threads; what else runs on the machine matters less to them.
        megabytes: peak memory of the process.
        figures: by name, in [0, 1].
    """

    seconds: float
    cpu_seconds: float
    megabytes: float
    figures: dict[str, float]


def ours(problem: Problem, embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """Return all figures from the metrics of the library."""
    names = [*(f"recall@{k}" for k in problem.cuts), "map@r"]
    return {name: make_metric(name).value(embeddings, labels) for name in names}


def faiss(problem: Problem, embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """Return the recalls from the nearest neighbours of an exact index."""
    import faiss as library

    library.omp_set_num_threads(problem.threads)
    unit = normalize(embeddings).numpy()
    index = library.IndexFlatIP(problem.size)
    index.add(unit)
    hits = torch.zeros(len(problem.cuts))
    for queries in torch.arange(problem.examples).split(1000):
        # One more, for a query finds itself.
        nearest = index.search(unit[queries], problem.cuts[-1] + 1)[1]
        nearest = torch.from_numpy(nearest)
        others = nearest != queries[:, None]
        own = (labels[nearest] == labels[queries, None]) & others
        place = others.cumsum(1)
        hits += torch.stack([(own & (place <= k)).any(1).sum() for k in problem.cuts])
    recalls = (hits.double() / problem.examples).tolist()
    return {
        f"recall@{k}": recall for k, recall in zip(problem.cuts, recalls, strict=True)
    }


def metric_learning(
    problem: Problem, embeddings: Tensor, labels: Tensor
) -> dict[str, float]:
    """Return the two figures that pytorch-metric-learning has as well."""
    import faiss as library
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    library.omp_set_num_threads(problem.threads)
    fields = {"recall@1": "precision_at_1", "map@r": "mean_average_precision_at_r"}
    calculator = AccuracyCalculator(
        include=tuple(fields.values()),
        k="max_bin_count",
        device=torch.device("cpu"),
    )
    found = calculator.get_accuracy(normalize(embeddings), labels)
    return {name: float(found[field]) for name, field in fields.items()}


CONTESTANTS = {
    "ours": ours,
    "faiss, recalls only": faiss,
    "pytorch-metric-learning, recall@1 and map@r only": metric_learning,
}


def take(name: str, problem: Problem) -> Found:
    """Return what a contestant takes in this process; imports are not timed."""
    torch.set_num_threads(problem.threads)
    contestant = CONTESTANTS[name]
    contestant(Problem(50, 8), *Problem(50, 8).draw())
    embeddings, labels = problem.draw()
    started, worked = time.perf_counter(), time.process_time()
    figures = contestant(problem, embeddings, labels)
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    return Found(seconds, cpu, peak_megabytes()[0], figures)


def in_turn(names: Sequence[str], problem: Problem, repeats: int) -> dict[str, Found]:
    """Return the fastest of each, every time in a fresh process, all in turn.

    Raises:
        MetricOptError: if figures differ.
    """
    best: dict[str, Found] = {}
    context = multiprocessing.get_context("spawn")
    for name in [*names] * repeats:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found = pool.submit(take, name, problem).result()
        if name not in best or found.seconds < best[name].seconds:
            best[name] = found
    check_equal(best)
    return best


def check_equal(found: dict[str, Found]) -> None:
    """Check that all contestants agree on every figure that they share.

    Raises:
        MetricOptError: if two differ; the message names them.
    """
    (first, reference), *rest = found.items()
    for name, other in rest:
        for figure, value in other.figures.items():
            expected = reference.figures[figure]
            if abs(value - expected) > EQUAL:
                raise MetricOptError(
                    f"{figure} is {expected:.6f} by {first!r}, {value:.6f} by {name!r}"
                )


def lines_of(problem: Problem, found: dict[str, Found]) -> list[Measurement]:
    """Return the lines of the table for one problem, ours first."""
    fastest, lines = found["ours"].seconds, []
    for name, took in found.items():
        what = f"{problem.examples:,} x {problem.size}: {name}"
        text = f"{took.seconds:.2f} s ({took.cpu_seconds:.2f} s of CPU)"
        text += f", peak {took.megabytes:.0f} MB"
        if name != "ours":
            text += f", {took.seconds / fastest:.1f} x ours"
        elif problem.examples == FULL:
            target = f"<= {SECONDS} s, {MEGABYTES} MB"
            met = took.seconds <= SECONDS and took.megabytes <= MEGABYTES
            lines.append(Measurement(what, text, target, met))
            continue
        lines.append(Measurement(what, text))
    figures = found["ours"].figures
    shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
    return [*lines, Measurement("  the same figures of all", shown)]


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [5_000, 20_000]
    parser.add_argument("--examples", type=int, nargs="+", default=sizes, metavar="N")
    parser.add_argument("--size", type=int, default=512, help="of an embedding")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3, help="the best counts")
    full = f"also ours of {FULL:,} examples"
    parser.add_argument("--full", action="store_true", help=full)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure and print the table; return 0, also where a target is missed."""
    asked = arguments(given)
    print(
        f"torch {torch.__version__}, {asked.threads} threads of {os.cpu_count()} cores "
        f"{platform.machine()}, best of {asked.repeats}",
        flush=True,
    )
    lines = []
    for examples in asked.examples:
        problem = Problem(examples, asked.size, asked.threads)
        lines += lines_of(problem, in_turn([*CONTESTANTS], problem, asked.repeats))
    if asked.full:
        problem = Problem(FULL, asked.size, asked.threads)
        lines += lines_of(problem, in_turn(["ours"], problem, 1))
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The work that `benchmarks.speed.versions` times, by the library's public face alone.

It runs with the library of another version too, so it imports nothing of the suite.
"""

import sys
import time
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from torch import Tensor, nn

import metricopt


def macro_f(outputs: Tensor, targets: Tensor) -> float:
    """Return the macro F of outputs [N, C]."""
    return float(f1_score(targets, outputs.argmax(1), average="macro"))


def digits() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return 900 digits to train on and 897 to observe, images [N, 1, 8, 8]."""
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels / 16).float().view(-1, 1, 8, 8)
    targets = torch.tensor(labels)
    return (images[:900], targets[:900]), (images[900:], targets[900:])


def convolutions() -> nn.Module:
    """Return a small convolutional network with random weights."""
    torch.manual_seed(0)
    first = nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU()
    second = nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.ReLU()
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    return nn.Sequential(*first, *second, *head)


def dense() -> nn.Module:
    """Return a small dense network with random weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def run(
    model: nn.Module, metric: object, method: str | metricopt.Method, queries: int
) -> None:
    """Fine-tune a model on digits."""
    train, observe = digits()
    options = metricopt.FinetuneOptions(
        method=method,
        queries=queries,
        progress=False,
        higher_is_better=None if isinstance(metric, str) else True,
    )
    metricopt.finetune(
        model,
        train=train,
        observe=observe,
        loss=nn.CrossEntropyLoss(),
        metric=metric,
        options=options,
    )


WORK: dict[str, Callable[[], None]] = {
    "MetricOpt on outputs, convolutions, 50 queries": lambda: run(
        convolutions(), macro_f, metricopt.MetricOptOutputs(), 50
    ),
    "MetricOpt, convolutions, 300 queries": lambda: run(
        convolutions(), "mcr", "metricopt", 300
    ),
    "CMA-ES, dense network, 300 queries": lambda: run(dense(), "mcr", "cma-es", 300),
    "CMA-ES, dense network, own metric, 300 queries": lambda: run(
        dense(), macro_f, "cma-es", 300
    ),
}
"""Pieces of work by name."""


def main() -> None:
    """Do the work named in each line of the input, and print its seconds."""
    run(convolutions(), macro_f, "metricopt-outputs", 20)  # imports the rest of torch
    for line in sys.stdin:
        started = time.perf_counter()
        WORK[line.strip()]()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()

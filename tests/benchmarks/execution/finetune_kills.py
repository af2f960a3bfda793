"""Kill calls of `finetune` with a checkpoint, call again, and compare.

`python -m tests.benchmarks.execution.finetune_kills` starts it.

Apart from the seconds, phi, the values of all queries and the summary must equal those
of an undisturbed call to the last bit. Only the query that was in flight at the kill
may be asked again: the metric logs every evaluation before it answers.
"""

import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from metricopt import FinetuneOptions, Split, finetune
from metricopt.errors import MetricOptError
from metricopt.files import write_atomically
from tests.benchmarks.execution.kills import Plan, Sandbox, judge, parser

METHODS = {"auto": 30, "cma-es": 40}
"""Methods, each with its queries: one learns from outputs, one from phi alone."""
SECONDS = 0.1
"""What one evaluation takes, so that most kills hit one."""
BEGIN = "begin"
SECONDS_OF_SUMMARY = re.compile(r" in [\d.]+ s ")


@dataclass(frozen=True)
class LoggedAccuracy:
    """The accuracy; every question is a line of the log before it is answered."""

    log: Path

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        append(self.log, hashlib.sha256(outputs.numpy().tobytes()).hexdigest())
        time.sleep(SECONDS)
        return (outputs.argmax(1) == targets).double().mean().item()


def append(log: Path, line: str) -> None:
    """Write a line at once, so that a kill cannot lose it."""
    with log.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def call(results: Path, store: Path) -> None:
    """Fine-tune a network for digits by every method, and write what was found."""
    results.mkdir(parents=True, exist_ok=True)
    model, train, observe = _digits()
    found = {}
    for method, queries in METHODS.items():
        log = results / f"{method}.log"
        append(log, BEGIN)
        result = finetune(
            model,
            train=train,
            observe=observe,
            loss=nn.CrossEntropyLoss(),
            metric=LoggedAccuracy(log),
            options=FinetuneOptions(method, queries=queries, no_harm=False),
            higher_is_better=True,
            progress=False,
            checkpoint=store / f"{method}.txt",
        )
        found[method] = {
            "phi": result.phi.double().tolist(),
            "values": result.values.tolist(),
            "summary": SECONDS_OF_SUMMARY.sub(" ", result.summary()),
            "spent": [result.spent.queries, result.spent.gradient_steps],
        }
    write_atomically(results / "found.json", json.dumps(found).encode())


def differences(calm: Sandbox, disturbed: Sandbox) -> list[str]:
    """Return how disturbed calls differ from undisturbed ones, a sentence each."""
    problems, again = [], 0
    expected, found = (
        json.loads((site.results / "found.json").read_text())
        for site in (calm, disturbed)
    )
    for method in METHODS:
        problems += [
            f"{method}: {name} differs from that of the undisturbed call"
            for name, value in expected[method].items()
            if found[method][name] != value
        ]
        (asked,) = sections(calm.results / f"{method}.log")
        log = disturbed.results / f"{method}.log"
        try:
            again += asked_again(asked, list(sections(log)))
        except MetricOptError as error:
            problems.append(f"{method}: {error}")
    print(f"queries in flight at a kill, and so asked again: {again}")
    return problems


def sections(log: Path) -> Iterator[list[str]]:
    """Yield the questions that every call in a log asked."""
    for part in log.read_text().split(f"{BEGIN}\n")[1:]:
        yield part.split()


def asked_again(expected: list[str], calls: Sequence[list[str]]) -> int:
    """Return how many queries were asked again, each the last one of a killed call.

    It is an error if any other was asked again, or none was asked.
    """
    done, again = 0, 0
    for questions in calls:
        if questions and done and questions[0] == expected[done - 1]:
            done, again = done - 1, again + 1
        if questions != expected[done : done + len(questions)]:
            raise MetricOptError(f"other questions follow query {done}")
        done += len(questions)
    if done != len(expected):
        raise MetricOptError(f"{done} queries were made instead of {len(expected)}")
    return again


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kill test and return the exit code; see `kills.judge`."""
    module = "tests.benchmarks.execution.finetune_kills"
    accepted = parser(module)
    accepted.add_argument("--results", type=Path, help="of one call, made unkilled")
    accepted.add_argument("--store", type=Path, help="where its checkpoints are")
    options = accepted.parse_args(arguments)
    if options.results is not None:
        call(options.results, options.store or options.results)
        return 0
    command = (sys.executable, "-m", module)
    return judge(Plan(command, options.times, options.seed, differences))


def _digits() -> tuple[nn.Module, Split, Split]:
    """Return a network that has seen half of the digits rarely, and two splits."""
    pixels, digits = load_digits(return_X_y=True)
    inputs, labels = torch.tensor(pixels / 16).float(), torch.tensor(digits)
    torch.manual_seed(0)
    kept, observed = torch.randperm(len(labels))[:1000].split([700, 300])
    kept = kept[(labels[kept] < 5) | (torch.arange(700) % 10 == 0)]
    model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[kept]), labels[kept]).backward()
        optimizer.step()
    train, observe = (Split(inputs[at], labels[at]) for at in (kept, observed))
    return model, train, observe


if __name__ == "__main__":
    sys.exit(main())

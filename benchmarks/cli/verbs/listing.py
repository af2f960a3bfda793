"""The verb `list`: everything that has a name; methods with what they cost."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from statistics import median
from typing import TextIO

from tabulate import tabulate
from tqdm import tqdm

from benchmarks.cli import catalogue
from benchmarks.cli.parser import check_name
from benchmarks.runs.paths import ROOT

METHODS = "methods"
ALIGNED = ("left", "left", "right", "right", "right", "left")
COSTS = (
    "queries, steps, s: medians over the committed runs of tier local. They include "
    "meta-training, unless its value function was in the cache, and the training of "
    "the network. A dot: no run is committed."
)

NO_METHODS = ("method", "network", "no-harm", "oracle", "second-run", "theta")
"""Kinds of arm that run a method, and are none."""
HEADERS = ("method", "contract", "queries", "steps", "s", "paper")
NOTHING = "·"


def run(options: Namespace) -> int:
    """Print all units, or those of one kind.

    With `--names` only names, one per line, for scripts. Packages whose units cannot be
    imported are named below, for scripts on stderr.
    """
    kinds = {kind.plural: kind for kind in catalogue.kinds()}
    if options.kind is not None:
        name = check_name("kind", options.kind, list(kinds))
        _print_kind(name, kinds[name])
        _print_broken(catalogue.method_kinds() if name == METHODS else [kinds[name]])
        return 0
    if options.names is not None:
        name = check_name("kind", options.names, list(kinds))
        print("\n".join(catalogue.usable(kinds[name])))
        _print_broken([kinds[name]], sys.stderr)
        return 0
    print("experiments")
    experiments = catalogue.usable(kinds["experiments"])
    width = max(map(len, experiments))
    for name, about in experiments.items():
        print(f"  {name.ljust(width)}  {about}")
    others = [plural for plural in kinds if plural != "experiments"]
    width = max(map(len, others))
    for plural in others:
        print(f"{plural.ljust(width)}  {', '.join(catalogue.usable(kinds[plural]))}")
    _print_broken(kinds.values())
    return 0


def _print_kind(name: str, kind: catalogue.Kind) -> None:
    if name == METHODS:
        print(tabulate(method_table(), HEADERS, colalign=ALIGNED))
        print(COSTS)
        return
    units = catalogue.usable(kind)
    width = max(map(len, units))
    for unit, about in units.items():
        print(f"{unit.ljust(width)}  {about}")


def _print_broken(kinds: Iterable[catalogue.Kind], to: TextIO | None = None) -> None:
    for error in dict.fromkeys(e for k in kinds for e in catalogue.broken(k).values()):
        print(f"left out: {error}", file=to)


def method_table() -> list[tuple[str, ...]]:
    """Return a line for every method, with the fields of `HEADERS`.

    Costs are medians over all committed runs of tier local, in all tables.
    """
    spent = _costs()
    lines = []
    for kind in catalogue.method_kinds():
        contract = catalogue.METHODS[kind.name]
        texts = catalogue.described(kind)
        for name in catalogue.usable(kind):
            if kind.name == "kind of arm" and name in NO_METHODS:
                continue
            runs = spent.get(name, [])
            paper = catalogue.source(texts[name])
            costs = [f"{median(column):,.0f}" for column in zip(*runs, strict=True)]
            lines.append((name, contract, *(costs or 3 * [NOTHING]), paper or NOTHING))
    return lines


def _costs() -> dict[str, list[tuple[float, ...]]]:
    """Return queries, steps and seconds of every committed run, by its method."""
    # Here, as they take a second to import: the list of all units is to be instant.
    from benchmarks.runs.record import NETWORK
    from benchmarks.runs.store import read_jsonl

    found: dict[str, list[tuple[float, ...]]] = {}
    paths = sorted((ROOT / "results").glob("*/local/records.jsonl"))
    for path in tqdm(paths, "reading records", unit="table", leave=False, disable=None):
        for record in read_jsonl(path):
            arm = record.spec.arm
            if record.status == "done" and arm.kind != "oracle":
                seconds = record.total_seconds + record.seconds.get(NETWORK, 0.0)
                cost = (record.queries, record.gradient_steps, seconds)
                found.setdefault(arm.name or arm.kind, []).append(cost)
    return found

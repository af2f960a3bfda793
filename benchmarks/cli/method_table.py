"""All methods with their paper, their contract, and what they cost in the records."""

import ast
import re
from statistics import median
from typing import NamedTuple

from benchmarks.cli import catalogue
from benchmarks.runs.paths import ROOT
from benchmarks.runs.record import NETWORK
from benchmarks.runs.store import read_jsonl

CONTRACTS = {
    "method": "chooses phi",
    "rival": "chooses phi",
    "network method": "trains the network",
    "kind of arm": "moves outputs",
}
"""What methods do, by kind of the registry."""
NO_METHODS = ("method", "network", "no-harm", "oracle", "second-run", "theta")
"""Kinds of arm that run a method, and are none."""
HEADERS = ("method", "contract", "queries", "steps", "s", "paper")
NOTHING = "·"
SOURCE = re.compile(r"Source: (.+?)(?:(?<!Alg)(?<!Sec)(?<!Fig)(?<!Eq)\.(?:\s|$)|;)")


class Cost(NamedTuple):
    """What one run took."""

    queries: float
    steps: float
    seconds: float


def method_table() -> list[tuple[str, ...]]:
    """Return a line for every method, with the fields of `HEADERS`.

    Costs are medians over all committed runs of tier local, in all tables.
    """
    spent = _costs()
    lines = []
    for kind in catalogue.kinds():
        contract = CONTRACTS.get(kind.name)
        if contract is None:
            continue
        for name in catalogue.units(kind):
            if kind.name == "kind of arm" and name in NO_METHODS:
                continue
            runs = spent.get(name, [])
            costs = [f"{median(column):,.0f}" for column in zip(*runs, strict=True)]
            lines.append(
                (name, contract, *(costs or 3 * [NOTHING]), _paper(kind, name))
            )
    return lines


def _paper(kind: catalogue.Kind, name: str) -> str:
    file = ROOT / "baselines" / "post_hoc" / f"{name.replace('-', '_')}.py"
    if kind.name == "kind of arm" and file.exists():
        about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    else:
        about = catalogue.about(kind, name)
    found = SOURCE.search(" ".join(about.split()))
    return found[1] if found else NOTHING


def _costs() -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = {}
    for path in sorted((ROOT / "results").glob("*/local/records.jsonl")):
        for record in read_jsonl(path):
            arm = record.spec.arm
            if record.status == "done" and arm.kind != "oracle":
                seconds = record.total_seconds + record.seconds.get(NETWORK, 0.0)
                cost = Cost(record.queries, record.gradient_steps, seconds)
                found.setdefault(arm.name or arm.kind, []).append(cost)
    return found
